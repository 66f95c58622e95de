/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames of interpreted code in user stacks: what lib/stack/runtimes.bpf.h and src/runtimes share.
 */
#ifndef CORETAP_RUNTIME_H
#define CORETAP_RUNTIME_H

#include "lib/core/shared.h"

/*
 * Set in a frame of interpreted code: instead of an address, the frame is the number of a code
 * object above a place in it. It stays valid when the code and its process have gone.
 */
#define STACK_RUNTIME (1ULL << 61)
#define RUNTIME_NUMBER_BITS 40
#define RUNTIME_PLACE_BITS 20
#define RUNTIME_PLACE_MASK ((1ULL << RUNTIME_PLACE_BITS) - 1)

/* In the low bits of each number. */
enum runtime_kind {
	RUNTIME_NONE,
	RUNTIME_PYTHON,
	RUNTIME_V8,
	RUNTIME_HOTSPOT,
	RUNTIME_PHP,
	RUNTIME_RUBY,
	RUNTIME_KINDS
};
#define RUNTIME_KIND_BITS 3
#define RUNTIME_KIND_MASK ((1 << RUNTIME_KIND_BITS) - 1)

/*
 * In the place of a frame with number 0, which has no code object, below its kind: why others may
 * be missing.
 */
#define RUNTIME_MARK_BITS 8
enum runtime_mark {
	RUNTIME_MARK_VERSION = 1, /* a version whose structures are not known */
	RUNTIME_MARK_THREAD,      /* too many threads: this one was not found */
	RUNTIME_MARK_UNREADABLE,  /* a frame or code object that is none, or not in memory */
	RUNTIME_MARK_FRAME,       /* likewise, and other frames are not concerned */
	RUNTIME_MARKS
};

/* Kinds of Python's frames. */
enum python_frames {
	PYTHON_NOT_KNOWN,
	PYTHON_OBJECTS, /* 3.9: objects; one for each native frame of the evaluation loop */
	PYTHON_COUNTED, /* 3.10: the same, with a C structure in each of those native frames */
	PYTHON_INLINED, /* 3.11: calls add frames only; the first one of a loop is marked */
	PYTHON_SHIMS,   /* 3.12: a frame in the native one is the loop's first */
	PYTHON_CURRENT, /* 3.13: the same, without the C structure */
};

/* Offsets in the structures of one version, in bytes. */
struct python_layout {
	__u8 frames; /* enum python_frames */
	__u8 minor;  /* of the version */
	__u16 frame_bytes;
	__u16 interpreters, interpreter; /* in the runtime: the first; in one: the next */
	__u16 threads, thread, id; /* in an interpreter; in a thread: next, and pthread_self() */
	__u16 current;             /* in a thread: frame or C structure */
	__u16 c_frame, c_previous; /* in the C structure */
	__u16 executable, previous, instruction, first, owner; /* in a frame */
	__u16 type;                                            /* in any object */
	__u16 line, version, file, name, lines, code; /* in a code object; version 0: none */
	__u16 ascii, compact;                         /* in a string: its characters */
};

/* Offsets in the objects of one version of V8, in bytes; types of objects are V8's numbers. */
struct v8_layout {
	__u16 known;                       /* 0: a version whose objects are not known */
	__u16 fp_context, fp_function;     /* below the frame pointer */
	__u16 shared;                      /* in a function */
	__u16 name, data, script, literal; /* in its description, SharedFunctionInfo */
	__u16 script_source, script_name, script_line, script_id;
	__u16 scope_flags, scope_count, scope_names; /* in a ScopeInfo */
	__u16 scope_start;                           /* 0: behind the names */
	__u16 module_scope;                          /* in the flags */
	__u16 type;                                  /* in a map */
	__u16 type_shared, type_scope, type_script;
	__u16 length, chars; /* in a string */
	__u16 pad;
};

/* Offsets in the structures of one build of HotSpot (the Java virtual machine), in bytes. */
struct hotspot_layout {
	__u16 block;      /* bytes of a HeapBlock, which a CodeBlob follows */
	__u16 blob_bytes; /* of a CodeBlob or nmethod, as far as it is read */
	__u16 nmethod;    /* bytes of an nmethod, which its header size says */
	__u16 header_size, header_size_bytes;
	__u16 frame_size;                           /* in words */
	__u16 frame_complete, frame_complete_bytes; /* from the code's start, in bytes */
	__u16 code, code_is_offset;                 /* address, or offset in the CodeBlob */
	__u16 name;                                 /* of a CodeBlob */
	__u16 method, compile_id;                   /* of an nmethod */
	__u16 deopt, deopt_is_offset;               /* as `code` */
	__u16 original_pc;                          /* of an nmethod, an offset in its frame */
	__u16 const_method, entry;                  /* of a Method */
	__u16 constants, code_size, name_index;     /* of a ConstMethod, */
	__u16 const_method_bytes;                   /* before its bytecodes; in words: */
	__u16 const_method_size, const_method_flags;
	__u16 pool_holder, pool_length, pool_bytes; /* of a ConstantPool, before its entries */
	__u16 class_name;                           /* of a Klass */
	__u16 class_constants;                      /* of an InstanceKlass */
	__u16 symbol_length, symbol_body;           /* of a Symbol */
	__u16 source_file;                          /* of a ConstantPool; 0: not known */
	__u16 source_in_class;                      /* of an InstanceKlass instead */
	__u16 version;                              /* of the virtual machine */
	__u16 pad[2];
};

/* A part of the memory in which HotSpot keeps its code. */
struct hotspot_heap {
	__u64 begin, end;
	__u64 segments; /* for each segment: how far back its block begins; 255: free */
	__u64 shift;    /* log2 of a segment's bytes */
};

/* A process that runs HotSpot; by unwind_process's hotspot. Constant when it has started. */
#define HOTSPOT_PROCESSES 256
#define HOTSPOT_HEAPS 3
#define HOTSPOT_SOURCE 128
#define HOTSPOT_LINES 2048
#define PHP_CLASS_NAME 128
#define HOTSPOT_CONST_METHOD 5   /* words of a ConstMethod: from its ConstantPool to its size */
#define RUNTIME_HOTSPOT_BLOB 512 /* of a CodeBlob or nmethod, at most */

struct hotspot_process {
	__u64 begin, end;                   /* its code; equal: none */
	__u64 interpreter, interpreter_end; /* part of it */
	__u64 entry_return;                 /* where calls of native code into Java return */
	__u64 library, library_end;         /* the library's code */
	struct hotspot_heap heaps[HOTSPOT_HEAPS];
	struct hotspot_layout layout;
};

/* Offsets in the structures of one build of PHP, in bytes. */
struct php_layout {
	__u16 current; /* the running frame, in executor_globals; 0: a build that is not known */
	__u16 file;    /* of a function of PHP code; its first line follows */
};

/* Offsets in the structures of one version of Ruby, in bytes. */
struct ruby_layout {
	__u16 frame;      /* bytes of a control frame; 0: a version that is not known */
	__u16 lines;      /* in the body of code: where its table of lines is */
	__u16 embedded;   /* in a string that contains its characters: these */
	__u16 has_module; /* of the thread's execution context: the variable is a library's */
	__s64 context;    /* the variable: from the library's block of the thread, or from the
			   * thread pointer */
};

/* A file that contains an interpreter; by unwind_mapping's runtime. */
struct runtime_file {
	__u32 kind; /* enum runtime_kind; its layout follows, others are 0 */
	struct python_layout python;
	struct v8_layout v8;
	struct php_layout php;
	struct ruby_layout ruby;
	/* Addresses minus the bias of a mapping. */
	__u64 runtime; /* _PyRuntime, executor_globals, or the tls_index of Ruby's variable */
	__u64 other;   /* PyCode_Type, gHotSpotVMTypes; Ruby: its array of names, 0: not known */
	__u64 eval_begin, eval_end; /* the interpreter's loop; not with all of Python's */
};

#define RUNTIME_FILES 256

/* A code object, sent when a stack first has it. */
#define RUNTIME_CODE 0xfffffffffffffffcULL /* no record starts with this time */
#define RUNTIME_FILE_NAME 512
#define RUNTIME_NAME 256
#define RUNTIME_LINES 4096

#define RUNTIME_UTF8 8

/*
 * Ruby's table of lines: for each instruction with a line, `entries` of 12 bytes that begin with
 * it; and a bit for each of their places (struct succ_index_table, iseq.c in its sources): 6 words
 * for the first 54 places, then 10 words for each 512.
 */
#define RUBY_FIRST_PLACES 54
#define RUBY_FIRST_BYTES 48
#define RUBY_BLOCK_PLACES 512
#define RUBY_BLOCK_BYTES 80
#define RUBY_ENTRY 12
#define RUBY_BLOCKS 3 /* sent; tables with more of them, or of entries, are in the process only */
#define RUBY_TABLE (RUBY_FIRST_BYTES + RUBY_BLOCKS * RUBY_BLOCK_BYTES)

struct ruby_lines {
	__u64 at;                /* where the process has the next four words: */
	__u64 entries_at;        /* an address; */
	__u64 positions;         /* 0: the table is as above; */
	__u64 entries, table_at; /* their number in the low half; an address */
	__u32 places, pad;
};

struct runtime_text {
	__u16 bytes;
	__u8 kind; /* bytes per character, or RUNTIME_UTF8; 0: not readable */
	__u8 cut;  /* there was more */
};

/* Where the source of a script is in the process. */
struct runtime_source {
	__u64 script;           /* the address of the object; it is moved at times */
	__u64 object, id;       /* words in it, */
	__u64 chars;            /* address; 0: not in one piece */
	__u32 length;           /* in characters */
	__u32 start;            /* the function's, in characters */
	__u32 first_line;       /* of the source, from 0 */
	__u16 object_at, id_at; /* whose offsets these are */
	__u32 width;            /* of a character, in bytes */
	__u32 pad;
};

/* Where a method of HotSpot is in the process. */
struct hotspot_code {
	__u64 method;  /* 0: code without a method */
	__u64 nmethod; /* 0: interpreted */
	__u64 code;    /* where the nmethod's begins */
	__u32 compile_id, pad;
};

struct runtime_code {
	__u64 mark;
	__u64 number;
	__u32 line;                     /* the first */
	__u32 line_bytes;               /* of `lines`: RUNTIME_LINES at most were copied */
	struct runtime_text file, name; /* HotSpot: the class is in place of the file */
	__u8 minor;                     /* HotSpot: its version */
	__u8 pad[3];
	__u32 tgid;                   /* in the loader's pid namespace; 0: outside */
	struct runtime_source source; /* V8 */
	struct hotspot_code hotspot;
	char file_text[RUNTIME_FILE_NAME];
	char name_text[RUNTIME_NAME];
	/*
	 * Python: the table of lines; V8: the source before the function; HotSpot: the name of the
	 * source file, ended by 0, in HOTSPOT_SOURCE bytes, and the table of lines; PHP: the
	 * class, ended by 0; Ruby: struct ruby_lines, RUBY_TABLE bytes of the table, entries. Sent
	 * as far as used.
	 */
	char lines[RUNTIME_LINES];
};

#endif
