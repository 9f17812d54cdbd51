/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* All that crosses from the kernel to user space. */
#include "../../bpf/events.h"
#include "../../bpf/guard.h"
#include "../../bpf/holders.h"
#include "../../bpf/select.h"
#include "../../bpf/shadow.h"
#include "../../bpf/start/path.h"
