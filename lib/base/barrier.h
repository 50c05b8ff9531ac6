/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory barriers that C11 atomics do not have (devices, write-combining
 * memory), the full one, and the pause of a spinning thread. For all of lib/.
 */
#ifndef LIB_BARRIER_H
#define LIB_BARRIER_H

/* Between threads of this machine: earlier stores before later loads too. */
static inline void barrier_full(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * The same where the other side is a device that reads and writes this memory:
 * on ARM it need not be in the inner shareable domain, which the fence of C11
 * is about.
 */
static inline void barrier_device(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Earlier stores to memory before a later store to a register. */
static inline void barrier_io(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#elif defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Earlier stores through a write-combining mapping have left the processor, in
 * order, before a later load through it starts. (sfence lets that load pass.)
 */
static inline void barrier_wc(void)
{
#if defined(__x86_64__) || defined(__SSE2__)
	__asm__ volatile("mfence" ::: "memory");
#elif defined(__i386__)
	__asm__ volatile("lock; addl $0,(%%esp)" ::: "memory", "cc");
#elif defined(__aarch64__)
	__asm__ volatile("dsb sy" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* An earlier load from a device has returned before anything later starts. */
static inline void barrier_device_load(void)
{
#if defined(__x86_64__) || defined(__SSE2__)
	__asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb ld" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* In a loop that waits for another processor. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
