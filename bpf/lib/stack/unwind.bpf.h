/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps from a frame to its caller's by tables that the loader builds (src/unwind).
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_UNWIND_BPF_H
#define CORETAP_UNWIND_BPF_H

#include "lib/arch/registers.bpf.h"
#include "lib/stack/frame.bpf.h"
#include "lib/stack/mapping.bpf.h"
#include "lib/stack/runtimes.bpf.h"

#if defined(__TARGET_ARCH_x86)
#include "lib/stack/x86_frame.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lib/stack/arm64_frame.bpf.h"
#else
#error "frames of this architecture are missing"
#endif

/* The loader writes through mmap; the entry of a process is changed last. */
#define UNWIND_TABLE(name, entries, type_)         \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, entries);      \
		__type(key, u32);                  \
		__type(value, type_);              \
	} name SEC(".maps")

UNWIND_TABLE(unwind_rules, UNWIND_RULES, struct unwind_rule);
UNWIND_TABLE(unwind_pages, UNWIND_PAGES, struct unwind_page);
UNWIND_TABLE(unwind_mappings, UNWIND_MAPPINGS, struct unwind_mapping);

struct unwind_chunk {
	u32 rows[UNWIND_CHUNK_ROWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct unwind_chunk));
		});
} unwind_rows SEC(".maps");

MAP(HASH, unwind_processes, 1, u64, struct unwind_process);

MAP(HASH, unwind_files, 1, struct unwind_file_key, struct unwind_file);

/* The entry of a program, or of the process that was given to the loader. */
inline_ struct unwind_process *unwind_process_of(u64 program)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &program);

	if (p)
		return p;
	program |= UNWIND_ANY_EXEC;
	return bpf_map_lookup_elem(&unwind_processes, &program);
}

/* Without a list of mappings, they are all looked up in the kernel's tree. */
inline_ void unwind_begin(struct walk *w)
{
	struct unwind_process *p = unwind_process_of(w->program);

	w->looked = 0;
	w->first_mapping = 0;
	w->mappings = 0;
	w->java = 0;
	w->hotspot = 0;
	if (p) {
		w->stack.image = stack_image(w->program, p->generation);
		w->looked = p->looked;
		w->first_mapping = p->first;
		w->mappings = p->count;
		w->hotspot = runtimes ? p->hotspot : 0;
	}
	w->found.length = 0;
	w->exact = 1;
	w->only_signal = 0;
	w->guessed = 0;
	w->not_ready = 0;
	w->unread = 0;
	w->runtime.begun = 0;
	w->runtime.met = 0;
	w->runtime.guesses = 0;
}

/* Ask the loader to re-read the maps? Once, until it has done so. */
inline_ bool unwind_ask(struct walk *w)
{
	struct unwind_process *p;

	if (!unwind_tables)
		return false;
	p = bpf_map_lookup_elem(&unwind_processes, &w->program);
	if (!p || p->asked || p->looked)
		return false;
	p->asked = 1;
	return true;
}

/* Finds the mapping at an address in the process's list; result in w->found. */
inline_ bool unwind_find_listed(struct walk *w, u64 pc)
{
	u32 at = w->first_mapping, n = w->mappings;
	struct unwind_mapping *m;

	if (!n)
		return false;
	for (int i = 0; i < 16; i++) {
		u32 half = n / 2, middle = at + half;

		if (!half)
			break;
		m = bpf_map_lookup_elem(&unwind_mappings, &middle);
		if (!m)
			return false;
		if (m->start <= pc)
			at = middle;
		n -= half;
	}
	m = bpf_map_lookup_elem(&unwind_mappings, &at);
	if (!m || pc - m->start >= (u64)m->length << 12)
		return false;
	if (!m->used) /* shared by all CPUs: written only once */
		m->used = 1;
	w->found = *m;
	return true;
}

/*
 * From the kernel's tree. The kernel writes start and offset of a mapping
 * one after the other, so only a complete segment of its file is accepted.
 */
__noinline int unwind_find_in_file(u64 pc)
{
	struct walk *w = current_walk();
	struct mapping_search *s;
	struct unwind_file *f;
	u64 length;

	if (!unwind_tables || !w || !mapping_find(pc))
		return 0;
	s = &w->search;
	length = (s->end - s->start) >> 12;
	w->found.start = s->start;
	w->found.length = (u32)length;
	w->found.pages = 0;
	w->found.file = 0;
	w->found.runtime = 0;
	w->found.page = UNWIND_LACK_CFI;
	if (!s->file && s->start != s->vdso)
		return 1;
	w->found.page = UNWIND_LACK_FILE;
	f = bpf_map_lookup_elem(&unwind_files, &s->key);
	if (!f) {
		w->unread = s->file;
		w->unread_key = s->key;
		return 1;
	}
	for (u32 i = 0; i < UNWIND_EXTENTS; i++) {
		/* The vdso's mapping may be longer than its code. */
		if ((s->file && f->extents[i].length != length) || !f->extents[i].length ||
		    f->extents[i].first != s->page)
			continue;
		w->found.page = f->page;
		w->found.pages = f->pages;
		w->found.file = (u16)f->file;
		w->found.runtime = (u8)f->runtime;
		w->found.bias = s->start - f->extents[i].bias;
		break;
	}
	return 1;
}

__noinline int unwind_find_mapping(u64 pc)
{
	struct walk *w = current_walk();

	if (!unwind_tables || !w)
		return 0;
	if (unwind_find_listed(w, pc))
		return 1;
	if (w->guessed && w->mappings)
		return 0; /* the guess was wrong */
	w->unknown_map = 1;
	return !w->looked && unwind_find_in_file(pc);
}

/* The frame value for w->ip, which is in w->found. */
inline_ u64 unwind_frame(struct walk *w)
{
	u64 exact = w->exact && w->stack.depth ? STACK_EXACT : 0;
	u64 place = w->ip - w->found.bias;

	if (!w->found.file || place > STACK_PLACE_MASK)
		return w->ip | exact;
	return place | (u64)w->found.file << STACK_PLACE_BITS | STACK_IN_FILE | exact;
}

/* The index of the rule for an address in w->found; 0: none. */
inline_ u32 unwind_find_rule(struct walk *w, u64 pc)
{
	u64 address = pc - w->found.bias;
	u32 key = (u32)address << 16 | 0xffff, index, at, n; /* one index: little stack */
	struct unwind_page *p;
	struct unwind_chunk *c;
	void *rows;

	if (address >> UNWIND_PAGE_BITS >= w->found.pages)
		return 0;
	index = w->found.page + (u32)(address >> UNWIND_PAGE_BITS);
	p = bpf_map_lookup_elem(&unwind_pages, &index);
	if (!p)
		return 0;
	index = p->chunk;
	at = p->first;
	n = p->rows;
	rows = bpf_map_lookup_elem(&unwind_rows, &index);
	if (!rows)
		return 0;
	index = 0;
	c = bpf_map_lookup_elem(rows, &index);
	if (!c)
		return 0;
	for (int i = 0; i < 16; i++) {
		u32 half = n / 2, middle = at + half;

		if (!half)
			break;
		barrier_var(middle);
		if (c->rows[middle & (UNWIND_CHUNK_ROWS - 1)] <= key)
			at = middle;
		n -= half;
	}
	barrier_var(at);
	return c->rows[at & (UNWIND_CHUNK_ROWS - 1)] & 0xffff;
}

/* Code without unwind information: uses its frame pointer, if plausible. */
inline_ int unwind_guess(struct walk *w)
{
	u64 next, ip;

	w->stack.end = STACK_END_NO_CFI;
	if (!unwind_bp(w) || w->bp < w->sp || w->bp - w->sp >= 1 << 20 ||
	    !unwind_read(w, w->bp, &next) || !unwind_read(w, w->bp + 8, &ip) || !ip)
		return 1;
	runtime_guessed(w, w->bp);
	unwind_guessed(w, w->bp);
	w->bp = next;
	w->ip = unwind_address(ip);
	w->exact = 0;
	w->guessed = 1;
	return 0;
}

#define RETURN_PROBES 64 /* MAX_URETPROBE_DEPTH: the kernel's limit per task */

/*
 * w->ip is not in code: has the kernel's return probe replaced the return address, below
 * w->sp? The kernel keeps the original (struct return_instance), which w->ip is set to.
 */
__noinline int unwind_replaced(void)
{
	struct walk *w = current_walk();
	struct task_struct *t = (void *)bpf_get_current_task();
	struct return_instance *r;

	if (w)
		walk_cannot_repeat(w);
	if (!unwind_tables || !w || w->exact || !bpf_core_field_exists(t->utask))
		return 0;
	r = BPF_CORE_READ(t, utask, return_instances);
	for (int i = 0; i < RETURN_PROBES && r; i++) {
		if (BPF_CORE_READ(r, stack) == w->sp - RETURN_ADDRESS_BYTES) {
			w->ip = BPF_CORE_READ(r, orig_ret_vaddr);
			return w->ip != 0;
		}
		r = BPF_CORE_READ(r, next);
	}
	return 0;
}

OPT(bool, walks_at_entries); /* frames at functions' first instructions, and at returns */

#define UNWIND_RUNTIME 2 /* runtime_begin() is needed before the step */
#define UNWIND_HOTSPOT 3 /* hotspot_steps() is needed in place of the step */

/* Records the frame and steps to its caller's; not 0: it was the last one, or one of these. */
inline_ int unwind_step(struct walk *w)
{
	struct unwind_rule *rule;
	u64 pc, cfa;
	u32 index;

	if (w->stack.depth >= stack_user_depth)
		return unwind_end(w, STACK_END_DEPTH);
	pc = w->ip - !w->exact;
	if (pc - w->jvm.begin < w->java)
		return UNWIND_HOTSPOT;
	if (pc - w->found.start >= (u64)w->found.length << 12 && !unwind_find_mapping(pc)) {
		if (unwind_replaced())
			return 0;
		if (w->guessed)
			return 1; /* the guess was wrong */
		if (!(w->ip >> USER_BITS))
			walk_found(w, w->ip);
		return unwind_end(w, w->looked ? STACK_END_NO_MAPPING : STACK_END_NOT_READY);
	}
	if (w->found.runtime && runtimes && !w->runtime.begun)
		return UNWIND_RUNTIME;
	w->stack.guessed += w->guessed;
	w->guessed = 0;
	walk_found(w, unwind_frame(w));
	index = unwind_find_rule(w, pc);
	if (!index && w->exact && w->stack.depth == 1 && walks_at_entries)
		return unwind_entry(w);
	/* In sigreturn ip is after the last instruction with a rule: retry, one byte before.
	 */
	if (!index && w->exact && w->stack.depth == 1 && pc != w->found.start) {
		w->stack.depth = 0;
		w->hash = 0;
		w->addresses = 0;
		w->exact = 0;
		w->only_signal = 1;
		return 0;
	}
	if (!index && !w->found.pages && w->found.page == UNWIND_LACK_MEMORY)
		return unwind_end(w, STACK_END_NO_MEMORY);
	if (!index && !w->found.pages && w->found.page == UNWIND_LACK_FILE) {
		w->not_ready = 1;
		return unwind_guess(w);
	}
	rule = bpf_map_lookup_elem(&unwind_rules, &index);
	if (!rule)
		return 1;
	if (w->only_signal) {
		w->only_signal = 0;
		return rule->cfa == UNWIND_SIGNAL ? unwind_signal(w) : unwind_guess(w);
	}
	if (rule->cfa == UNWIND_SP)
		cfa = unwind_sp_cfa(w, rule);
	else if (rule->cfa == UNWIND_BP)
		cfa = unwind_bp(w) ? w->bp + (s64)rule->offset : 0;
	else if (rule->cfa == UNWIND_NONE)
		return unwind_guess(w);
	else if (rule->cfa == UNWIND_END)
		return unwind_end(w, STACK_END_WHOLE);
	else if (rule->cfa == UNWIND_SIGNAL)
		return unwind_signal(w);
	else if (rule->cfa == UNWIND_VFORK)
		return unwind_vfork(w, rule);
	else
		cfa = unwind_rare_cfa(w, rule);
	if (!cfa)
		return unwind_end(w, STACK_END_OTHER_RULE);
	/* A rule with `more` leads from one stack to another, which may be below. */
	if ((cfa < w->sp || (cfa == w->sp && !frame_may_be_empty(w))) &&
	    !(rule->cfa == UNWIND_BP && rule->more))
		return unwind_end(w, STACK_END_BACKWARDS);
	if (w->found.runtime && runtimes && runtime_is_here(&w->runtime, cfa, pc - w->found.bias))
		runtime_here();
	if (rule->bp == UNWIND_BP_AT_CFA) {
		unwind_bp_saved(w, cfa + (s64)rule->bp_slot * 8);
	} else if (rule->bp == UNWIND_BP_AT_BP) {
		if (!unwind_bp(w))
			return unwind_end(w, STACK_END_UNREADABLE);
		unwind_bp_saved(w, w->bp + (s64)rule->bp_slot * 8);
	}
	return unwind_to_caller(w, rule, cfa);
}

/* WALK_STEPS of them: each call looks up the walk. */
__noinline int unwind_steps(void)
{
	struct walk *w = current_walk();
	int ended;

	if (!unwind_tables || !w)
		return 1;
	ended = unwind_step(w);
	return ended ? ended : unwind_step(w);
}

#endif
