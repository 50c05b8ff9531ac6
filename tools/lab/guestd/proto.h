/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames between the lab and guestd over a virtio-serial port.
 * Included by guestd only; agent.py is the other end and mirrors it.
 */
#ifndef GUESTD_PROTO_H
#define GUESTD_PROTO_H

#include <stdint.h>

#define FRAME_MAGIC	0x42414c46u	/* "FLAB" */
#define FRAME_MAX	65536u		/* largest payload */
#define PORT_NAME	"fabrex.lab"

enum frame_type {
	/* lab to guest */
	FRAME_EXEC = 'X',	/* argv, NUL-terminated strings */
	FRAME_TTY = 'T',	/* the same, on a pseudo-terminal */
	FRAME_STDIN = 'I',	/* bytes; an empty one closes standard input */
	FRAME_SIGNAL = 'K',	/* le32 signal to the command's process group */
	FRAME_WINSIZE = 'W',	/* le16 rows, le16 columns */
	/* guest to lab */
	FRAME_HELLO = 'H',	/* guestd is up; payload: kernel release */
	FRAME_STDOUT = 'O',
	FRAME_STDERR = 'E',
	FRAME_EXIT = 'S',	/* le32 wait status */
};

struct frame {
	uint32_t magic;
	uint32_t type;
	uint32_t id;		/* the command, chosen by the lab */
	uint32_t len;		/* bytes of payload that follow */
};

#endif
