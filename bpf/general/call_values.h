/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits of records of whole calls (bpf/general/call_values.bpf.h). */
#ifndef CORETAP_CALL_VALUES_H
#define CORETAP_CALL_VALUES_H

#define CALL_VALUES_TARGETS 128 /* numbers of entries and returns */
#define CALL_VALUES_MOST 16384  /* bytes of a record */

#endif
