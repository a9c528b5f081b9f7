# SPDX-License-Identifier: GPL-2.0-only
# Compiles and links C: objects in $(OUT)/obj, with sanitizers in $(OUT)/san/obj, and with that of
# threads in $(OUT)/tsan/obj. A Makefile that sets OUT, and names the objects of its programs, includes
# this at its end; programs below $(OUT)/san/ and $(OUT)/tsan/ are linked with them. `$(link)` is the
# recipe of a program.
CC ?= gcc
CFLAGS ?= -O2 -g
WARNINGS := -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_THREADS := -O1 -g -fsanitize=thread
COMPILE_MK := $(lastword $(MAKEFILE_LIST))

Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$(2)")

.DELETE_ON_ERROR:
.SECONDARY:

define link
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
endef

$(OUT)/san/%: CFLAGS = $(SANITIZE)
$(OUT)/tsan/%: CFLAGS = $(SANITIZE_THREADS)

define compile
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS) -MMD -MP -c -o $@ $<
endef

# A rule for each: one with all patterns would count one compilation for all.
$(OUT)/obj/%.o: %.c Makefile $(COMPILE_MK)
	$(compile)

$(OUT)/san/obj/%.o: %.c Makefile $(COMPILE_MK)
	$(compile)

$(OUT)/tsan/obj/%.o: %.c Makefile $(COMPILE_MK)
	$(compile)

-include $(shell test -d $(OUT) && find $(OUT) -name '*.d')
