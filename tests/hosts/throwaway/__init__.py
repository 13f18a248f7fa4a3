# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Throw-away Debian hosts: systemd as PID 1, their own journald and sshd, all on one machine."""

from __future__ import annotations
