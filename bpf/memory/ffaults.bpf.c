// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ffaults: page faults by file. */
#include "lib/mm/file_faults.bpf.h"

OPT(bool, by_process);

inline_ bool files_only(void)
{
	return false;
}

inline_ bool faults_by_process(void)
{
	return by_process;
}
