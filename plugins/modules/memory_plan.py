#!/usr/bin/python
# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memory_plan
short_description: Plan the KV pool of an SGLang server
version_added: 0.1.0
author:
  - inferops.sglang contributors (@inferops)
description:
  - Works out the C(mem_fraction_static) with which SGLang's KV pool holds a wanted context, or the pool that a given fraction makes.
  - Uses the sizing rules of the SGLang version in question, with its way to charge a draft model,
    and prefers what earlier starts on the host have shown (O(observed)) to every estimate.
  - Changes nothing. A plan that does not fit is returned with C(verdict=impossible), not failed.
  - All memory is GiB (2^30 bytes) per rank, as SGLang's log prints it under the name GB.
extends_documentation_fragment: [inferops.sglang.attributes]
options:
  model:
    description: Directory of the model on the host, or the path of its C(config.json).
    type: path
  model_config:
    description: Content of the model's C(config.json), instead of O(model).
    type: dict
  draft_model:
    description: The same as O(model) for the draft model.
    type: path
  draft_model_config:
    description: The same as O(model_config) for the draft model.
    type: dict
  sglang_version:
    description:
      - Version of SGLang, such as V(0.5.12.post1).
      - One newer than the newest known is planned by the newest known rules, with a warning.
      - The string of a branch need not be true, and may name no release at all. Where starts in O(observed) show another release's order
        of loads, pool line or bytes per token, the plan goes by that one and says so in RV(plan.reasons).
    type: str
    required: true
  speculative_algorithm:
    description:
      - SGLang's C(--speculative-algorithm); empty for none.
      - V(NEXTN) and V(EAGLE) without a draft use the model's own next-token layers.
      - V(DDTREE) is in no SGLang release and is planned as V(DFLASH).
    type: str
    choices: ['', DFLASH, DDTREE, DSPARK, EAGLE, EAGLE3, NEXTN, STANDALONE, NGRAM]
    default: ''
  speculative_num_steps:
    description: SGLang's flag of that name; needed for EAGLE types before 0.5.7 only.
    type: int
  speculative_eagle_topk:
    description: SGLang's flag of that name; needed for EAGLE types before 0.5.7 only.
    type: int
  speculative_num_draft_tokens:
    description: SGLang's flag of that name. With V(DFLASH) it must be the draft's block size.
    type: int
  tp_size:
    description: SGLang's C(--tp-size).
    type: int
    default: 1
  pp_size:
    description: SGLang's C(--pp-size).
    type: int
    default: 1
  dp_size:
    description: SGLang's C(--dp-size).
    type: int
    default: 1
  ep_size:
    description: SGLang's C(--ep-size). Starts with another one do not count as O(observed).
    type: int
    default: 1
  dcp_size:
    description: SGLang's C(--dcp-size).
    type: int
    default: 1
  enable_dp_attention:
    description: SGLang's C(--enable-dp-attention).
    type: bool
    default: false
  page_size:
    description: Page size of the pool in tokens, as SGLang uses it with the attention backend in question.
    type: int
    default: 1
  kv_cache_dtype:
    description:
      - SGLang's C(--kv-cache-dtype), as the version in O(sglang_version) spells it.
      - V(auto) is the model's 16-bit type, or FP8 where the checkpoint asks for it in a form that this version reads. Sparse attention
        (DeepSeek V3.2, GLM-5) takes it from the card instead, see O(compute_capability).
    type: str
    default: auto
  draft_kv_cache_dtype:
    description: SGLang's C(--speculative-draft-kv-cache-dtype), from 0.5.18 on.
    type: str
  attention_backend:
    description:
      - SGLang's C(--attention-backend); for sparse attention C(--dsa-decode-backend), for 4-bit pools C(--prefill-attention-backend).
      - Needed where it is set and decides the pool - V(aiter) takes 15 % off the fraction above 8192 tokens of context, V(trtllm) keeps
        shorter fp8 rows of sparse attention.
    type: str
  draft_attention_backend:
    description: SGLang's C(--speculative-draft-attention-backend). With V(fa4) a block-diffusion draft keeps 16-bit KV, from 0.5.16 on.
    type: str
  platform:
    description:
      - What the cards are of. It decides what loading adds to the weights of a checkpoint (INT4 experts, scales of one byte);
        without it that is part of their error.
    type: str
    choices: [cuda, rocm]
  compute_capability:
    description:
      - CUDA compute capability of the cards, such as 9.0 (H100), 10.0 (B200) or 12.0 (RTX PRO 6000).
      - Decides what SGLang does by itself for sparse attention, for C(nvfp4) and for MiniMax M3. What it would change is said where it
        is not given.
    type: float
  context_length:
    description: Tokens that one request must be able to hold; SGLang's C(--context-length).
    type: int
  concurrent_requests:
    description: How many such requests the pool must hold at once; may be fractional.
    type: float
    default: 1
  pool_target:
    description: Tokens wanted in the pool, whatever O(context_length) and O(concurrent_requests) would ask for.
    type: int
  mem_fraction_static:
    description: Answer what this fraction gives, instead of looking for one.
    type: float
  gpu_free_gib:
    description:
      - Free memory in GiB before the weights load, one figure or one for each rank; the smallest decides.
      - Not needed where an earlier start shows it, or shows its pool and the memory of the weights is known.
    type: list
    elements: float
  free_at_sizing_gib:
    description:
      - Free memory in GiB when the pool is sized, one figure or one for each rank; the smallest decides.
      - By default O(gpu_free_gib) less what this version has loaded by then.
    type: list
    elements: float
  weights_gib:
    description:
      - Memory of the model's weights per rank; by default from the headers of the checkpoint in O(model),
        as M(inferops.sglang.checkpoint_info) estimates it and with the error that it states.
    type: float
  draft_weights_gib:
    description: The same as O(weights_gib) for the draft model.
    type: float
  observed:
    description:
      - Earlier starts, each the C(allocation) value that M(inferops.sglang.allocation_info) returned. The newest that matches wins.
      - A start counts where version, models, algorithm, parallel sizes, KV type and page size are the plan's, as far as both are known.
        Context, concurrency and fraction may differ.
      - The newest is the one with the latest C(started_at), or the last in the list where one has none.
    type: list
    elements: dict
    default: []
  free_jitter_gib:
    description:
      - How far free memory moves between two readings on this host (unified memory, SGLang on the CPU).
      - The fraction is chosen so that the pool holds what is required even if so much less is free.
    type: float
    default: 0.0
  min_headroom_gib:
    description:
      - Memory that must be left outside the pools for graphs and activations. With less the verdict is V(tight).
      - It is V(impossible) with less than 2.5 GiB, or less than 1 GiB where an earlier start has shown what the graphs take,
        or with less than this figure if that is smaller.
    type: float
    default: 5.0
  max_running_requests:
    description: SGLang's C(--max-running-requests); sizes the request table outside the budget.
    type: int
  max_total_tokens:
    description: SGLang's C(--max-total-tokens); caps the pool.
    type: int
  chunked_prefill_size:
    description: SGLang's C(--chunked-prefill-size). A start that ran out of memory with a larger one does not bound the plan.
    type: int
  swa_full_tokens_ratio:
    description: SGLang's C(--swa-full-tokens-ratio), for sliding-window models.
    type: float
    default: 0.8
  disable_hybrid_swa_memory:
    description:
      - SGLang's C(--disable-hybrid-swa-memory) - every layer of a sliding-window model keeps every token.
      - Set it too where SGLang does so by itself - with C(--enable-hierarchical-cache) for MiMo-V2 and Step-3.5, and for gpt-oss
        with the attention backend C(trtllm_mha) under 0.5.8 and 0.5.9 (the default there on Blackwell cards).
    type: bool
    default: false
  disable_radix_cache:
    description:
      - SGLang's C(--disable-radix-cache). From 0.5.14 on it makes O(max_running_requests) decide the pool of the sliding-window layers.
    type: bool
    default: false
  disable_overlap_schedule:
    description: SGLang's C(--disable-overlap-schedule).
    type: bool
    default: false
  mamba_full_memory_ratio:
    description:
      - SGLang's C(--mamba-full-memory-ratio), for models that keep states of fixed size beside the KV cache (Mamba, linear attention).
      - Memory for states as a multiple of the memory for tokens, where no flag fixes the number of states.
    type: float
    default: 0.9
  max_mamba_cache_size:
    description:
      - SGLang's C(--max-mamba-cache-size), the number of states to keep, for all data-parallel ranks together.
      - Releases from 0.5.3.post2 to 0.5.6 look at it with O(disable_radix_cache) only.
    type: int
  mamba_ssm_dtype:
    description: SGLang's C(--mamba-ssm-dtype). By default float32, from 0.5.9 on what the checkpoint names.
    type: str
    choices: [float32, bfloat16, float16]
  mamba_scheduler_strategy:
    description:
      - SGLang's C(--mamba-scheduler-strategy), called C(--mamba-radix-cache-strategy) from 0.5.14 on.
      - It decides how many states one request may need, and with that how many requests run at once.
    type: str
    choices: [auto, no_buffer, extra_buffer, extra_buffer_lazy]
    default: auto
  mm_feature_transport:
    description: SGLang's C(--mm-feature-transport); on the GPU it reserves 1 GiB of a multimodal model's budget from 0.5.18 on.
    type: str
    choices: [cpu, cuda_ipc, cuda_vmm]
    default: cpu
  cuda_graph_max_bs:
    description:
      - SGLang's C(--cuda-graph-max-bs), the largest batch that CUDA graphs are captured for; by default what SGLang takes for the card.
    type: int
  disable_cuda_graph:
    description: SGLang's C(--disable-cuda-graph); also for devices without CUDA graphs.
    type: bool
    default: false
notes:
  - "Models: multi-head and grouped-query attention, MLA (DeepSeek V2/V3, Kimi K2), sparse attention (DeepSeek V3.2, GLM-5, MiniMax M3),
    sliding windows (gpt-oss, Gemma 4, Llama 4, MiMo V2), the compressed attention of DeepSeek V4, and hybrids with states beside the
    KV cache (Qwen3-Next, Qwen3.5, Nemotron-H, Falcon-H1, Granite 4, Kimi Linear and K3, Ling 2.5 and 3, LFM2 and others);
    drafts of DFLASH, EAGLE and MTP type. Others are refused by name."
"""

EXAMPLES = r"""
- name: Plan 200,000 tokens of context from the checkpoint and the cards
  inferops.sglang.memory_plan:
    model: /srv/models/kimi-k2.6
    draft_model: /srv/models/kimi-k2.6-dflash
    sglang_version: 0.5.12.post1
    speculative_algorithm: DFLASH
    tp_size: 8
    context_length: 200000
    gpu_free_gib: 93.7
  register: estimate

- name: Plan again from what the first start showed
  inferops.sglang.memory_plan:
    model: /srv/models/kimi-k2.6
    draft_model: /srv/models/kimi-k2.6-dflash
    sglang_version: 0.5.12.post1
    speculative_algorithm: DFLASH
    tp_size: 8
    context_length: 200000
    observed:
      - "{{ first_start.allocation }}"

- name: Ask what a fraction gives
  inferops.sglang.memory_plan:
    model_config: "{{ lookup('ansible.builtin.file', 'config.json') | from_json }}"
    sglang_version: 0.5.23
    tp_size: 8
    mem_fraction_static: 0.9
    gpu_free_gib: 93.7
    weights_gib: 72.4
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    mem_fraction_static:
      description: The fraction, at four decimals and rounded up so that the pool reaches what is required; none where no fraction does.
      type: float
    required_tokens:
      description: Tokens that the pool must hold, in whole pages; none where only O(mem_fraction_static) was given.
      type: int
    predicted_tokens:
      description: Tokens that the fraction gives, on every rank; where no fraction gives what is required, the most that any gives.
      type: int
    error_tokens:
      description: Half-width of RV(plan.predicted_tokens), from the two decimals of the log or from the estimate of the weights.
      type: int
    bytes_per_token:
      description: Bytes for one token and rank - C(target) and C(draft) as stored, C(charged) as SGLang takes them from its budget.
      type: dict
    headroom_gib:
      description: What RV(plan.predicted_tokens) leave outside the pools, the weights, the request table and, as far as an earlier start
        shows it, the graphs; negative where the memory does not even hold these.
      type: float
    tokens_per_hundredth:
      description: Tokens for 0.01 of the fraction.
      type: int
    basis:
      description: V(observed) where an earlier start gave the figures, else V(estimated).
      type: str
    era:
      description: The SGLang releases whose rules were used.
      type: str
    verdict:
      description: V(fits), V(tight) or V(impossible).
      type: str
    reasons:
      description: What the plan rests on and what to know about it.
      type: list
      elements: str
    alternatives:
      description: What else was tried, and whether it would fit, each with C(change), C(mem_fraction_static), C(headroom_gib), C(verdict),
        C(predicted_tokens) and C(required_tokens).
      type: list
      elements: dict
    lower_bound:
      description: At or below this fraction there is no pool.
      type: float
    upper_bound:
      description: The largest fraction that leaves O(min_headroom_gib); none where no fraction does.
      type: float
    running_requests:
      description: Requests that each data-parallel worker makes room for, by O(max_running_requests) or by SGLang's default.
      type: int
    req_to_token_gib:
      description: What the table of their tokens takes. It is allocated outside the pool and counted in RV(plan.headroom_gib).
      type: float
    graph_batch_sizes:
      description:
        - Batch sizes that CUDA graphs are captured for, smallest first; empty with O(disable_cuda_graph). What the graphs take comes
          out of RV(plan.headroom_gib), and how much that is only a start shows.
        - None where they are not known, that is before SGLang 0.5.3, with O(enable_dp_attention), and where RV(plan) does not tell which
          of SGLang's size classes the card is in. The card is taken to have been free before SGLang came.
      type: list
      elements: int
    graph_tokens_per_request:
      description: Tokens that these graphs compute for each request, more than 1 with speculative decoding; none where SGLang chooses.
      type: int
    recommended_max_running_requests:
      description:
        - How many requests of the full context the pool holds. That is RV(plan.predicted_tokens) divided by O(context_length) and
          rounded down, at least O(concurrent_requests) rounded up and at least 1, times O(dp_size); none where there is no pool.
          Where a pool of states lets fewer run, it is so many.
        - A larger O(max_running_requests) does not make the pool smaller, save where RV(plan.reasons) say so. It costs
          RV(plan.req_to_token_gib) and graphs, and serves more requests at once as long as they are shorter.
      type: int
    swa_tokens:
      description: Tokens that the windowed layers hold in a pool of their own; none for any other model.
      type: int
    mamba_slots:
      description: States that a hybrid model keeps in one data-parallel worker; none for any other.
      type: int
    states_gib:
      description: Memory of these states, with those of draft tokens; it comes out of the fraction. None for a model without them.
      type: float
  sample:
    mem_fraction_static: 0.9259
    required_tokens: 200000
    predicted_tokens: 200099
    error_tokens: 2
    bytes_per_token: {target: 70272, draft: 3072, charged: 77184}
    headroom_gib: 5.67
    tokens_per_hundredth: 13039
    basis: observed
    era: 0.5.11-0.5.13
    verdict: fits
    lower_bound: 0.7724
    upper_bound: 0.9334
    running_requests: 8
    req_to_token_gib: 0.007
    graph_batch_sizes: [1, 2, 3, 4, 5, 6, 7, 8]
    graph_tokens_per_request: 8
    recommended_max_running_requests: 1
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.inferops.sglang.plugins.module_utils._arguments import (
    ALTERNATIVE_OPTIONS,
    NEEDED_OPTIONS,
    PLAN_OPTIONS,
    request_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._eras import era_of, read_version
from ansible_collections.inferops.sglang.plugins.module_utils._model_geometry import InputError
from ansible_collections.inferops.sglang.plugins.module_utils._plan import make_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec=PLAN_OPTIONS,
        supports_check_mode=True,
        required_one_of=NEEDED_OPTIONS,
        mutually_exclusive=ALTERNATIVE_OPTIONS,
    )
    try:
        plan = make_plan(request_of(module.params))
    except InputError as error:
        module.fail_json(msg=str(error))
    for note in era_of(read_version(module.params["sglang_version"]))[1]:
        module.warn(note)
    module.exit_json(changed=False, plan=plan.as_dict())


if __name__ == "__main__":
    main()
