#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: endpoint_probe
short_description: Ask a running SGLang server whether it answers, and with what
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Asks a server for its health, its models, its pool, and for tokens. What it does not answer, or answers badly, is returned and never
    fails; whoever asks judges it.
  - One token without a prompt of a certain length is asked by C(/health_generate), which takes no key. More, or after a long prompt, are
    asked by C(/generate), as a stream, so that the time to the first one is seen.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  url:
    description: Address of the server, for example V(http://127.0.0.1:30000). Give it, or O(port).
    type: str
  host:
    description: Host of the server, with O(port).
    type: str
    default: 127.0.0.1
  port:
    description: Port of the server.
    type: int
  tls:
    description: Whether the server at O(host) and O(port) speaks HTTPS.
    type: bool
    default: false
  validate_certs:
    description: Whether its certificate has to be trusted.
    type: bool
    default: true
  api_key_file:
    description: File with the server's key, where it asks for one. Read where the module runs.
    type: path
  checks:
    description: >-
      What to ask. V(health) is C(/health), V(models) C(/v1/models), V(info) C(/server_info) or C(/get_server_info), V(generate) tokens.
    type: list
    elements: str
    choices: [health, models, info, generate]
    default: [health, models, info, generate]
  tokens:
    description: How many tokens to generate.
    type: int
    default: 1
  prompt_tokens:
    description: Length of the prompt in tokens, one plain token again and again. V(0) is a prompt of one token.
    type: int
    default: 0
  timeout:
    description: Seconds that each question may take.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Does it answer?
  inferops.sglang.endpoint_probe:
    port: 30000
  register: asked

- name: Does it take a prompt near the limit?
  inferops.sglang.endpoint_probe:
    url: http://gpu01:30000
    api_key_file: /etc/sglang/key
    prompt_tokens: 199000
    tokens: 8
    timeout: 600
  register: long

- name: Refuse it if it does not
  ansible.builtin.assert:
    that: long.endpoint.answered
    fail_msg: "{{ long.endpoint.error }}"
"""

RETURN = r"""
endpoint:
  description: What was answered. What was not asked or not answered is none.
  returned: success
  type: dict
  contains:
    url:
      description: Whom it was asked.
      type: str
    healthy:
      description: Whether C(/health) says so.
      type: bool
    model:
      description: Path of the model that the server was started with.
      type: str
    served_models:
      description: Names that clients ask for.
      type: list
      elements: str
    answered:
      description: Whether as many tokens came as were asked.
      type: bool
    generated_tokens:
      description: Tokens that came.
      type: int
    first_token_s:
      description: Seconds to the first token.
      type: float
    total_s:
      description: Seconds to the last one, or until it went wrong.
      type: float
    max_total_num_tokens:
      description: Tokens of the pool, as the server says.
      type: int
    status:
      description: Status of the question for tokens where it was asked, else of the last; V(-1) where no answer came.
      type: int
    error:
      description: What went wrong first, empty for nothing.
      type: str
    errors:
      description: What went wrong, by check.
      type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._endpoint import CHECKS, Wish, probe
from ansible_collections.inferops.sglang.plugins.module_utils._http import KeyFileError, opener, read_key
from ansible_collections.inferops.sglang.plugins.module_utils._waiter import Clock

# a pool holds some millions of tokens; a longer prompt is a slip of the finger that would be sent all the same
_MOST_TOKENS = 10_000_000


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str"},
            "host": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int"},
            "tls": {"type": "bool", "default": False},
            "validate_certs": {"type": "bool", "default": True},
            "api_key_file": {"type": "path", "no_log": False},
            "checks": {"type": "list", "elements": "str", "choices": list(CHECKS), "default": list(CHECKS)},
            "tokens": {"type": "int", "default": 1, "no_log": False},
            "prompt_tokens": {"type": "int", "default": 0, "no_log": False},
            "timeout": {"type": "int", "default": 120},
        },
        required_one_of=[("url", "port")],
        mutually_exclusive=[("url", "port")],
        supports_check_mode=True,
    )
    asked = module.params
    problem = odd_option(asked)
    if problem:
        module.fail_json(msg=problem)
    try:
        key = read_key(asked["api_key_file"] or "", "the server's key")
    except KeyFileError as error:
        module.fail_json(msg=str(error))
    wish = Wish(address(asked), key, asked["checks"], asked["tokens"], asked["prompt_tokens"], asked["timeout"])
    module.exit_json(changed=False, endpoint=probe(wish, opener(asked["validate_certs"]), Clock()).as_dict())


def address(asked: dict[str, Any]) -> str:
    if asked["url"]:
        return str(asked["url"])
    host = f"[{asked['host']}]" if ":" in asked["host"] else asked["host"]
    return f"{'https' if asked['tls'] else 'http'}://{host}:{asked['port']}"


def odd_option(asked: dict[str, Any]) -> str:
    """What is wrong with the options, empty for nothing."""
    if asked["url"] and not asked["url"].startswith(("http://", "https://")):
        return f"url: found {asked['url']!r}; give an address that begins with http:// or https://"
    if asked["port"] is not None and not 0 < asked["port"] < 65536:
        return f"port: found {asked['port']}; give a TCP port between 1 and 65535"
    for name, least, most in (("tokens", 1, _MOST_TOKENS), ("prompt_tokens", 0, _MOST_TOKENS), ("timeout", 1, 86400)):
        if not least <= asked[name] <= most:
            return f"{name}: found {asked[name]}; give a number from {least} to {most:,}"
    return ""


if __name__ == "__main__":
    main()
