// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fmapfault: page faults on mapped files, by process and file. */
#include "lib/mm/file_faults.bpf.h"

inline_ bool files_only(void)
{
	return true;
}

inline_ bool faults_by_process(void)
{
	return true;
}
