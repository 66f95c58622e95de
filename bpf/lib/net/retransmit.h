/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why TCP sends a segment again, as tools report it. */
#ifndef CORETAP_RETRANSMIT_H
#define CORETAP_RETRANSMIT_H

enum retransmit_cause {
	RETRANSMIT_TIMEOUT, /* the timer expired; also what it then sends again with
			       acknowledgements */
	RETRANSMIT_FAST,    /* duplicate acknowledgements show a loss */
	RETRANSMIT_RACK,    /* the times of acknowledged segments show a loss (RFC 8985) */
	RETRANSMIT_LOSS_PROBE,
	RETRANSMIT_SYN_ACK, /* the answer to a SYN, by its timer */
	RETRANSMIT_OTHER,   /* as when the path's MTU is smaller */
	RETRANSMIT_CAUSES
};

#endif
