/* io/message_channel.h: whole messages over a stream socket.
 *
 * Each message is its length (four bytes, little end first) and its bytes.  The other side may be
 * hostile: a length beyond the ceiling, and a peer that does not read until the ceiling of what
 * waits for it is reached, end the channel.  on_message gets bytes that it may keep for the call
 * only; on_close is called once, when the other side is gone or broke the rules.  Neither is called
 * inside ipw_message_channel_send(), and none after ipw_message_channel_close(), which on_message and on_close may
 * call. */
#ifndef IPW_IO_MESSAGE_CHANNEL_H
#define IPW_IO_MESSAGE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"

struct ipw_message_channel;

struct ipw_message_channel_callbacks {
    void (*on_message)(void *ud, const char *bytes, size_t n);
    void (*on_close)(void *ud, const char *why); /* static text */
    void *ud;
};

/* Takes the descriptor, which does not block from now on.  It keeps the loop running. */
struct ipw_message_channel *
ipw_message_channel_open(struct ipw_loop *loop, int fd, size_t max_bytes,
                         const struct ipw_message_channel_callbacks *callbacks);
void ipw_message_channel_send(struct ipw_message_channel *channel, const char *bytes, size_t n);
/* Blocks until something arrived or the channel is over, and calls back; false: it is over. */
bool ipw_message_channel_wait(struct ipw_message_channel *channel);
/* Writes out what waits, blocking. */
void ipw_message_channel_flush(struct ipw_message_channel *channel);
void ipw_message_channel_close(struct ipw_message_channel *channel); /* NULL is fine */

#endif
