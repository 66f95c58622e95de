/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SCSILATENCY_H
#define CORETAP_SCSILATENCY_H

#include "lib/core/shared.h"

#define SCSI_CDB 16 /* leading bytes of a command that identify it */

#define SCSI_TIMED_OUT 0xffffffff /* in place of a result */

struct scsi_place {
	__u32 host;
	__u32 channel;
	__u32 target;
	__u32 lun;
};

struct scsilatency_key {
	struct scsi_place device; /* zeros: not requested */
	__u32 opcode;
	__u32 result; /* 0: good, or not requested */
};

#endif
