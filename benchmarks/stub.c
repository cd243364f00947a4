/* A stub of a vLLM server, fast enough that it is never what a benchmark measures.
 *
 *   stub PORT        serves on 127.0.0.1:PORT until it is killed
 *
 * Any POST is a chat completion. The client steers the reply by a text anywhere in its body (a
 * message's content passes every proxy unchanged, an unknown JSON field does not):
 *
 *   stub(events=50 interval=20 first=0)
 *
 *   events    content events of a streamed reply
 *   interval  milliseconds between them; 0 sends all at once
 *   first     milliseconds before the first of them, or before an unstreamed reply
 *
 * The reply is streamed when the body holds "stream":true. As vLLM does: the head goes out at
 * once, a frame with the role comes with the first token, every event is an HTTP chunk of its
 * own, and the usage frame is sent only to a client that asked with "include_usage":true.
 *
 * GET /stub/state tells {"open","active","aborted","served"}: connections, replies under way,
 * replies whose client left before their end, replies finished. Any other GET answers with the
 * model list, which is enough for every peer's health and model probes.
 *
 * One thread, one epoll, one timer. Replies are made as the socket takes them (at most
 * HIGH_WATER bytes wait), so a stalled reader holds the stub back as it would hold back vLLM.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_EVENTS = 1024, HIGH_WATER = 65536, READ_SIZE = 65536, INCOMPLETE = -1 };

enum work { IDLE, STREAM, WHOLE };

struct buffer {
  char *data;
  size_t length, capacity;
};

struct connection {
  int fd;
  enum work work;
  bool usage, role_sent, awaits_writable;
  long events_left;
  int64_t interval, due; /* nanoseconds; due is an instant of CLOCK_MONOTONIC */
  struct buffer in, out;
  size_t sent;                      /* how much of `out` the socket has taken */
  struct connection *previous, *next; /* the list of connections with work */
};

static struct connection *active_list;
static int poller, timer;
static long open_count, active_count, aborted_count, served_count;
static struct buffer role_frame, token_frame, usage_frame, end_frame, whole_reply, models_reply;

#define ID "\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\","
#define CHUNK ID "\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"tiny\","
#define USAGE "\"usage\":{\"prompt_tokens\":10,\"total_tokens\":60,\"completion_tokens\":50}"
#define REST "\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"
#define COMMON "date: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"

static const char ROLE[] = "data: {" CHUNK
    "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}," REST;
static const char TOKEN[] = "data: {" CHUNK
    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"}," REST;
static const char STREAM_USAGE[] = "data: {" CHUNK "\"choices\":[]," USAGE "}\n\n";
static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\n" COMMON
    "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
static const char REPLY[] = "{" ID "\"object\":\"chat.completion\",\"created\":1760000000,"
    "\"model\":\"tiny\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
    "\"A stub's answer of a few words.\",\"refusal\":null,\"tool_calls\":[]},\"logprobs\":null,"
    "\"finish_reason\":\"stop\",\"stop_reason\":null}]," USAGE "}";
static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"tiny\",\"object\":\"model\","
    "\"created\":1760000000,\"owned_by\":\"vllm\",\"root\":\"tiny\",\"max_model_len\":131072}],"
    "\"model_path\":\"tiny\",\"served_model_name\":\"tiny\",\"version\":\"0.0.0-stub\"}";

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* -- buffers ---------------------------------------------------------------------------------- */

static void reserve(struct buffer *b, size_t room) {
  if (b->capacity - b->length >= room) return;
  b->capacity = (b->length + room) * 2;
  b->data = realloc(b->data, b->capacity);
  if (b->data == NULL) die("realloc");
}

static void append(struct buffer *b, const char *data, size_t length) {
  reserve(b, length);
  memcpy(b->data + b->length, data, length);
  b->length += length;
}

static void append_format(struct buffer *b, const char *format, ...) {
  va_list arguments;
  reserve(b, 4096);
  va_start(arguments, format);
  b->length += (size_t)vsnprintf(b->data + b->length, 4096, format, arguments);
  va_end(arguments);
}

static void append_json(struct buffer *b, const char *json) {
  append_format(b, "HTTP/1.1 200 OK\r\n" COMMON "content-length: %zu\r\n"
                "content-type: application/json\r\n\r\n%s", strlen(json), json);
}

static void build_replies(void) {
  append_format(&role_frame, "%zx\r\n%s\r\n", strlen(ROLE), ROLE);
  append_format(&token_frame, "%zx\r\n%s\r\n", strlen(TOKEN), TOKEN);
  append_format(&usage_frame, "%zx\r\n%s\r\n", strlen(STREAM_USAGE), STREAM_USAGE);
  append_format(&end_frame, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
  append_json(&whole_reply, REPLY);
  append_json(&models_reply, MODELS);
}

/* -- one reply -------------------------------------------------------------------------------- */

static void begin(struct connection *c, enum work work) {
  c->work = work;
  c->previous = NULL;
  c->next = active_list;
  if (active_list) active_list->previous = c;
  active_list = c;
  active_count++;
}

static void finish(struct connection *c) {
  if (c->previous) c->previous->next = c->next;
  else active_list = c->next;
  if (c->next) c->next->previous = c->previous;
  c->work = IDLE;
  active_count--;
}

static void discard(struct connection *c) {
  if (c->work != IDLE) {
    finish(c);
    aborted_count++;
  }
  open_count--;
  close(c->fd);
  free(c->in.data);
  free(c->out.data);
  free(c);
}

static void await_writable(struct connection *c, bool wanted) {
  struct epoll_event e = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = c};
  if (c->awaits_writable == wanted) return;
  c->awaits_writable = wanted;
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

/* Makes as much of the reply as is due and fits. */
static void produce(struct connection *c, int64_t time) {
  if (c->work == WHOLE && time >= c->due) {
    append(&c->out, whole_reply.data, whole_reply.length);
    finish(c);
    served_count++;
  }
  while (c->work == STREAM && time >= c->due && c->out.length - c->sent < HIGH_WATER) {
    if (!c->role_sent) append(&c->out, role_frame.data, role_frame.length);
    c->role_sent = true;
    append(&c->out, token_frame.data, token_frame.length);
    c->due += c->interval;
    if (--c->events_left > 0) continue;
    if (c->usage) append(&c->out, usage_frame.data, usage_frame.length);
    append(&c->out, end_frame.data, end_frame.length);
    finish(c);
    served_count++;
  }
}

/* Sends what waits and makes more until the socket is full or nothing is due.
 * Returns false if the connection is gone (and freed). */
static bool pump(struct connection *c) {
  for (;;) {
    produce(c, now());
    if (c->sent == c->out.length) break;
    ssize_t n = send(c->fd, c->out.data + c->sent, c->out.length - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      await_writable(c, true);
      return true;
    }
    if (n < 0) {
      discard(c);
      return false;
    }
    c->sent += (size_t)n;
    if (c->sent == c->out.length) c->sent = c->out.length = 0;
  }
  await_writable(c, false);
  return true;
}

/* -- requests --------------------------------------------------------------------------------- */

static bool holds(const char *data, size_t length, const char *text) {
  return memmem(data, length, text, strlen(text)) != NULL;
}

/* The number after `name` inside the stub(...) text, or the fallback. */
static long option(const char *text, size_t length, const char *name, long fallback) {
  const char *found = text ? memmem(text, length, name, strlen(name)) : NULL;
  return found ? atol(found + strlen(name)) : fallback;
}

static void answer_post(struct connection *c, const char *body, size_t length) {
  const char *text = memmem(body, length, "stub(", 5);
  const char *close = text ? memchr(text, ')', (size_t)(body + length - text)) : NULL;
  size_t span = close ? (size_t)(close - text) : 0;
  int64_t first = option(span ? text : NULL, span, "first=", 0) * 1000000LL;

  c->events_left = option(span ? text : NULL, span, "events=", 50);
  c->interval = option(span ? text : NULL, span, "interval=", 0) * 1000000LL;
  c->due = now() + first;
  if (!holds(body, length, "\"stream\":true") && !holds(body, length, "\"stream\": true")) {
    begin(c, WHOLE);
    return;
  }
  c->usage = holds(body, length, "\"include_usage\":true") ||
             holds(body, length, "\"include_usage\": true");
  append(&c->out, STREAM_HEAD, sizeof STREAM_HEAD - 1);
  c->role_sent = false;
  begin(c, STREAM);
}

static void answer_get(struct connection *c, const char *head, size_t length) {
  if (!holds(head, length, "/stub/state")) {
    append(&c->out, models_reply.data, models_reply.length);
    return;
  }
  char json[160];
  snprintf(json, sizeof json, "{\"open\":%ld,\"active\":%ld,\"aborted\":%ld,\"served\":%ld}",
           open_count, active_count, aborted_count, served_count);
  append_json(&c->out, json);
}

/* Length of a chunked body that starts at `body`, or INCOMPLETE. */
static long chunked_length(const char *body, size_t available) {
  size_t at = 0;
  for (;;) {
    const char *line = memmem(body + at, available - at, "\r\n", 2);
    if (line == NULL) return INCOMPLETE;
    size_t size = strtoul(body + at, NULL, 16);
    size_t end = (size_t)(line - body) + 2 + size + 2;
    if (end > available) return INCOMPLETE;
    if (size == 0) return (long)end;
    at = end;
  }
}

static long body_length(char *head, size_t head_length, size_t available) {
  char last = head[head_length - 1];
  head[head_length - 1] = 0; /* bound strcasestr */
  const char *length = strcasestr(head, "\r\ncontent-length:");
  bool chunked = strcasestr(head, "\r\ntransfer-encoding: chunked") != NULL;
  long declared = length ? atol(length + strlen("\r\ncontent-length:")) : 0;
  head[head_length - 1] = last;
  if (chunked) return chunked_length(head + head_length, available);
  return declared <= (long)available ? declared : INCOMPLETE;
}

/* Answers the requests that have arrived whole, one at a time. False if the connection is gone. */
static bool serve(struct connection *c) {
  while (c->work == IDLE && c->in.length > 0) {
    char *end = memmem(c->in.data, c->in.length, "\r\n\r\n", 4);
    if (end == NULL) return true;
    size_t head = (size_t)(end - c->in.data) + 4;
    long body = body_length(c->in.data, head, c->in.length - head);
    if (body == INCOMPLETE) return true;
    if (c->in.data[0] == 'P') answer_post(c, c->in.data + head, (size_t)body);
    else answer_get(c, c->in.data, head);
    c->in.length -= head + (size_t)body;
    memmove(c->in.data, c->in.data + head + body, c->in.length);
    if (!pump(c)) return false;
  }
  return true;
}

/* -- events ----------------------------------------------------------------------------------- */

static void accept_all(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    struct connection *c = calloc(1, sizeof *c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (c == NULL) die("calloc");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->fd = fd;
    open_count++;
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
  }
}

static void handle(struct connection *c, uint32_t events) {
  if ((events & EPOLLOUT) && (!pump(c) || !serve(c))) return;
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  for (;;) {
    reserve(&c->in, READ_SIZE + 1);
    size_t room = c->in.capacity - c->in.length - 1; /* one spare byte for strtoul and atol */
    ssize_t n = recv(c->fd, c->in.data + c->in.length, room, 0);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      discard(c);
      return;
    }
    c->in.length += (size_t)n;
    c->in.data[c->in.length] = 0;
    if ((size_t)n < room) break;
  }
  serve(c);
}

static void run_due(void) {
  int64_t time = now();
  struct connection *next;
  for (struct connection *c = active_list; c; c = next) {
    next = c->next;
    if (c->due <= time && !c->awaits_writable && pump(c)) serve(c);
  }
}

/* Arms the timer for the earliest reply that waits for its time, or disarms it. */
static void arm_timer(void) {
  int64_t earliest = 0;
  for (struct connection *c = active_list; c; c = c->next)
    if (!c->awaits_writable && (earliest == 0 || c->due < earliest)) earliest = c->due;
  struct itimerspec at = {.it_value = {earliest / 1000000000LL, earliest % 1000000000LL}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static int listen_on(int port) {
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
  if (listen(fd, 4096) < 0) die("listen");
  return fd;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: stub PORT\n");
    return 2;
  }
  int listener = listen_on(atoi(argv[1]));
  static struct epoll_event events[MAX_EVENTS];
  struct epoll_event on_listener = {.events = EPOLLIN, .data.ptr = &listener};
  struct epoll_event on_timer = {.events = EPOLLIN, .data.ptr = &timer};

  build_replies();
  poller = epoll_create1(0);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &on_listener);
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &on_timer);
  for (;;) {
    int count = epoll_wait(poller, events, MAX_EVENTS, -1);
    for (int i = 0; i < count; i++) {
      uint64_t expirations;
      if (events[i].data.ptr == &listener) accept_all(listener);
      else if (events[i].data.ptr == &timer) (void)!read(timer, &expirations, sizeof expirations);
      else handle(events[i].data.ptr, events[i].events);
    }
    run_due(); /* after the batch: it may free connections that the batch still names */
    arm_timer();
  }
}
