# Copyright: (c) 2026, inferops.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that SGLang's releases know, from their own parsers. Private to this collection: may change at any time.

Written by tests/differential/flag_table.py and held against every release by tests/differential: not to be edited by hand.
A row is the first release, the last one (empty: the newest has it still), and the names, without dashes in front.
"""

from __future__ import annotations

Row = tuple[str, str, str]

# The releases, oldest first.
RELEASES: tuple[str, ...] = (
    "0.4.6.post5", "0.4.9.post6", "0.5.1.post3", "0.5.2", "0.5.3", "0.5.3.post3", "0.5.4.post3", "0.5.5.post3", "0.5.6.post2",
    "0.5.7", "0.5.8.post1", "0.5.9", "0.5.10.post1", "0.5.11", "0.5.12.post1", "0.5.13.post1", "0.5.14", "0.5.15.post1", "0.5.16",
    "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23",
)  # fmt: skip

# Every flag.
FLAGS: tuple[Row, ...] = (
    ("0.4.6.post5", "0.4.6.post5", "enable-flashinfer-mla enable-flashmla n-share-experts-fusion"),
    ("0.4.6.post5", "0.5.1.post3", "pdlb-url"),
    ("0.4.6.post5", "0.5.3", "max-micro-batch-size"),
    ("0.4.6.post5", "0.5.3.post3", "enable-deepep-moe enable-ep-moe"),
    ("0.4.6.post5", "0.5.10.post1", (
        "ds-channel-config-path ds-heavy-channel-num ds-heavy-channel-type ds-heavy-token-num ds-sparse-decode-threshold "
        "enable-double-sparsity"
    )),
    ("0.4.6.post5", "0.5.12.post1", "enable-nan-detection"),
    ("0.4.6.post5", "0.5.13.post1", "debug-tensor-dump-inject"),
    ("0.4.6.post5", "0.5.17", "torchao-config"),
    ("0.4.6.post5", "0.5.19", (
        "collect-tokens-histogram cuda-graph-bs cuda-graph-max-bs enable-expert-distribution-metrics stream-output"
    )),
    ("0.4.6.post5", "", (
        "allow-auto-truncate api-key attention-backend base-gpu-id bucket-e2e-request-latency bucket-inter-token-latency "
        "bucket-time-to-first-token chat-template chunked-prefill-size completion-template constrained-json-whitespace-pattern "
        "context-length cpu-offload-gb data-parallel-size debug-tensor-dump-input-file debug-tensor-dump-output-folder "
        "decode-log-interval deepep-config deepep-mode delete-ckpt-after-loading device disable-chunked-prefix-cache "
        "disable-cuda-graph disable-cuda-graph-padding disable-custom-all-reduce disable-fast-image-processor "
        "disable-outlines-disk-cache disable-overlap-schedule disable-radix-cache disaggregation-bootstrap-port "
        "disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend dist-init-addr dist-timeout download-dir "
        "dp-size dtype enable-cache-report enable-custom-logit-processor enable-dp-attention enable-dp-lm-head enable-eplb "
        "enable-hierarchical-cache enable-memory-saver enable-metrics enable-mixed-chunk enable-multimodal enable-nccl-nvls "
        "enable-p2p-check enable-request-time-stats-logging enable-tokenizer-batch-encode enable-torch-compile "
        "ep-dispatch-algorithm ep-num-redundant-experts ep-size eplb-rebalance-num-iterations "
        "expert-distribution-recorder-buffer-size expert-distribution-recorder-mode expert-parallel-size file-storage-path "
        "flashinfer-mla-disable-ragged gpu-id-step grammar-backend hicache-ratio hicache-size hicache-write-policy host "
        "init-expert-location is-embedding json-model-override-args kv-cache-dtype kv-events-config load-balance-method "
        "load-format log-level log-level-http log-requests log-requests-level lora-backend lora-paths max-loras-per-batch "
        "max-prefill-tokens max-running-requests max-total-tokens mem-fraction-static mm-attention-backend model-path "
        "moe-dense-tp-size nccl-init-addr nnodes node-rank num-continuous-decode-steps page-size pipeline-parallel-size port "
        "pp-size preferred-sampling-params quantization quantization-param-path random-seed reasoning-parser revision "
        "sampling-backend schedule-conservativeness schedule-policy served-model-name show-time-cost skip-tokenizer-init "
        "speculative-accept-threshold-acc speculative-accept-threshold-single speculative-algorithm speculative-draft-model-path "
        "speculative-eagle-topk speculative-num-draft-tokens speculative-num-steps speculative-token-map stream-interval "
        "tensor-parallel-size tokenizer-mode tokenizer-path tool-call-parser torch-compile-max-bs tp-size "
        "triton-attention-num-kv-splits triton-attention-reduce-in-fp32 trust-remote-code warmups watchdog-timeout"
    )),
    ("0.4.9.post6", "0.5.3", "debug-tensor-dump-prefill-only"),
    ("0.4.9.post6", "0.5.3.post3", "enable-flashinfer-cutlass-moe enable-flashinfer-trtllm-moe enable-triton-kernel-moe"),
    ("0.4.9.post6", "0.5.9", "disaggregation-decode-dp disaggregation-decode-tp disaggregation-prefill-pp"),
    ("0.4.9.post6", "0.5.13.post1", "hybrid-kvcache-ratio"),
    ("0.4.9.post6", "", (
        "crash-dump-folder custom-weight-loader decode-attention-backend disable-hybrid-swa-memory disable-shared-experts-fusion "
        "enable-flashinfer-allreduce-fusion enable-lora enable-metrics-for-all-schedulers enable-mscclpp enable-pdmux "
        "enable-profile-cuda-graph enable-return-hidden-states enable-two-batch-overlap eplb-algorithm "
        "eplb-rebalance-layers-per-chunk hicache-io-backend hicache-storage-backend lora-target-modules max-lora-rank "
        "max-queued-requests model model-impl model-loader-extra-config nccl-port num-reserved-decode-tokens "
        "prefill-attention-backend skip-server-warmup sleep-on-idle sm-group-num swa-full-tokens-ratio weight-loader-disable-mmap"
    )),
    ("0.5.1.post3", "0.5.3.post3", "enable-flashinfer-mxfp4-moe"),
    ("0.5.1.post3", "", (
        "disable-flashinfer-cutlass-moe-fp4-allgather enable-cudagraph-gc enable-symm-mem ep flashinfer-mxfp4-moe-precision "
        "gc-warning-threshold-secs hicache-mem-layout hicache-storage-backend-extra-config hicache-storage-prefetch-policy "
        "max-loaded-loras moe-a2a-backend moe-runner-backend offload-group-size offload-mode offload-num-in-group "
        "offload-prefetch-step scheduler-recv-interval tbo-token-distribution-threshold tool-server weight-version"
    )),
    ("0.5.2", "0.5.19", "prefill-round-robin-balance"),
    ("0.5.2", "", (
        "enable-lmcache eplb-min-rebalancing-utilization-threshold generation-tokens-buckets mamba-ssm-dtype max-mamba-cache-size "
        "numa-node prompt-tokens-buckets speculative-attention-mode speculative-draft-model speculative-draft-model-revision "
        "tokenizer-worker-num"
    )),
    ("0.5.3", "0.5.3.post3", "enable-flashinfer-cutedsl-moe nsa-decode nsa-prefill oltp-traces-endpoint"),
    ("0.5.3", "0.5.6.post2", "load-watch-interval"),
    ("0.5.3", "0.5.9", "speculative-ngram-branch-length speculative-ngram-max-match-window-size speculative-ngram-min-match-window-size"),
    ("0.5.3", "0.5.20", "keep-mm-feature-on-device"),
    ("0.5.3", "", (
        "config disaggregation-decode-enable-offload-kvcache disaggregation-decode-polling-interval "
        "dynamic-batch-tokenizer-batch-size dynamic-batch-tokenizer-batch-timeout enable-deterministic-inference "
        "enable-dynamic-batch-tokenizer enable-fp32-lm-head enable-priority-scheduling enable-single-batch-overlap "
        "enable-torch-symm-mem enable-trace enable-weights-cpu-backup max-lora-chunk-size "
        "priority-scheduling-preemption-threshold radix-eviction-policy remote-instance-weight-loader-seed-instance-ip "
        "remote-instance-weight-loader-seed-instance-service-port remote-instance-weight-loader-send-weights-group-ports "
        "schedule-low-priority-values-first speculative-ngram-capacity speculative-ngram-match-type "
        "speculative-ngram-max-bfs-breadth speculative-ngram-min-bfs-breadth tokenizer-metrics-allowed-custom-labels "
        "tokenizer-metrics-custom-labels-header triton-attention-split-tile-size"
    )),
    ("0.5.3.post3", "0.5.3.post3", "crash-on-nan enable-beta-spec"),
    ("0.5.3.post3", "0.5.10.post1", "multi-item-scoring-delimiter"),
    ("0.5.3.post3", "0.5.13.post1", "enable-piecewise-cuda-graph"),
    ("0.5.3.post3", "0.5.19", "piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens"),
    ("0.5.3.post3", "", (
        "constrained-json-disable-any-whitespace elastic-ep-backend grpc-mode lora-eviction-policy mamba-full-memory-ratio "
        "modelopt-checkpoint-restore-path modelopt-checkpoint-save-path modelopt-quant mooncake-ib-device pdmux-config-path "
        "pp-max-micro-batch-size sampling-defaults speculative-draft-load-format"
    )),
    ("0.5.4.post3", "0.5.4.post3", "kt-amx-method kt-amx-weight-path"),
    ("0.5.4.post3", "0.5.9", "mm-max-concurrent-calls mm-per-request-timeout"),
    ("0.5.4.post3", "0.5.19", "nsa-decode-backend nsa-prefill-backend piecewise-cuda-graph-compiler"),
    ("0.5.4.post3", "", (
        "abort-on-priority-when-disabled checkpoint-engine-wait-weights-before-ready debug-tensor-dump-layers "
        "decrypted-config-file decrypted-draft-config-file disable-tokenizer-batch-decode kt-cpuinfer kt-num-gpu-experts "
        "kt-threadpool-count modelopt-export-path otlp-traces-endpoint quantize-and-serve rl-on-policy-target "
        "speculative-moe-runner-backend"
    )),
    ("0.5.5.post3", "", (
        "enable-attn-tp-input-scattered enable-broadcast-mm-inputs-process enable-draft-weights-cpu-backup "
        "enable-layerwise-nvtx-marker export-metrics-to-file export-metrics-to-file-dir kt-max-deferred-experts-per-token "
        "kt-method kt-weight-path"
    )),
    ("0.5.6.post2", "0.5.6.post2", "enable-flashinfer-autotune"),
    ("0.5.6.post2", "0.5.19", "enable-nsa-prefill-context-parallel"),
    ("0.5.6.post2", "", (
        "dllm-algorithm dllm-algorithm-config enable-fused-qk-norm-rope enable-torch-compile-debug-mode fastapi-root-path "
        "forward-hooks fp8-gemm-backend mm-enable-dp-encoder mm-process-config rl-quant-profile speculative-moe-a2a-backend"
    )),
    ("0.5.7", "0.5.8.post1", "disaggregation-decode-enable-fake-auto"),
    ("0.5.7", "0.5.13.post1", "custom-sigquit-handler"),
    ("0.5.7", "0.5.19", "mamba-scheduler-strategy"),
    ("0.5.7", "", (
        "disable-flashinfer-autotune enable-dynamic-chunking enable-multi-layer-eagle enable-precise-embedding-interpolation "
        "enable-prefix-mm-cache enable-return-routed-experts encoder-only encoder-transfer-backend encoder-urls language-only "
        "limit-mm-data-per-request log-requests-format mamba-track-interval pp-async-batch-depth prefill-max-requests "
        "remote-instance-weight-loader-backend remote-instance-weight-loader-start-seed-via-transfer-engine soft-watchdog-timeout "
        "speculative-draft-attention-backend speculative-draft-model-quantization"
    )),
    ("0.5.8.post1", "0.5.9", "disable-hicache-numa-detect hierarchical-sparse-attention-extra-config"),
    ("0.5.8.post1", "0.5.19", "nsa-prefill-cp-mode"),
    ("0.5.8.post1", "", (
        "admin-api-key enable-lora-overlap-loading enable-prefill-delayer fp4-gemm-backend hf-chat-template-name "
        "log-requests-target model-checksum prefill-delayer-forward-passes-buckets prefill-delayer-max-delay-passes "
        "prefill-delayer-token-usage-low-watermark prefill-delayer-wait-seconds-buckets uvicorn-access-log-exclude-prefixes"
    )),
    ("0.5.9", "", "attention-context-parallel-size attn-cp-size extra-metric-labels mamba-backend moe-data-parallel-size moe-dp-size"),
    ("0.5.10.post1", "0.5.19", (
        "disable-piecewise-cuda-graph enable-prefill-context-parallel enforce-piecewise-cuda-graph prefill-cp-mode"
    )),
    ("0.5.10.post1", "", (
        "default-priority-value disable-priority-preemption enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion "
        "enable-elastic-expert-backup enable-fused-moe-sum-all-reduce enable-hisparse enable-mfu-metrics enable-mm-global-cache "
        "enable-ssl-refresh enable-streaming-session enforce-disable-flashinfer-allreduce-fusion engine-info-bootstrap-port "
        "experts-shared-outer-loras gc-threshold hisparse-config incremental-streaming-output linear-attn-backend "
        "linear-attn-decode-backend linear-attn-prefill-backend modelexpress-config no-experts-shared-outer-loras pre-warm-nccl "
        "speculative-ngram-max-trie-depth ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password "
        "stream-response-default-include-usage use-ray"
    )),
    ("0.5.11", "0.5.12.post1", "no-record-nolora-graph record-nolora-graph"),
    ("0.5.11", "0.5.19", "enable-breakable-cuda-graph speculative-dflash-draft-window-size"),
    ("0.5.11", "0.5.20", "elastic-ep-rejoin"),
    ("0.5.11", "0.5.22", "speculative-skip-dp-mlp-sync"),
    ("0.5.11", "", (
        "batch-notify-size debug-cuda-graph disaggregation-decode-enable-radix-cache enable-dp-attention-local-control-broadcast "
        "enable-http2 enable-mis enable-quant-communications enforce-shared-experts-fusion grpc-http-sidecar-port "
        "lora-strict-loading lora-use-virtual-experts msprobe-dump-config no-lora-strict-loading speculative-adaptive "
        "speculative-adaptive-config speculative-dflash-block-size speculative-ngram-external-corpus-max-tokens "
        "speculative-ngram-external-corpus-path speculative-ngram-external-sam-budget strip-thinking-cache tokenizer-backend "
        "weight-loader-prefetch-checkpoints weight-loader-prefetch-num-threads"
    )),
    ("0.5.12.post1", "0.5.15.post1", "enable-deepep-waterfill"),
    ("0.5.12.post1", "", (
        "detokenizer-worker-num enable-forward-pass-metrics enable-return-indexer-topk enable-strict-thinking "
        "forward-pass-metrics-ipc-name forward-pass-metrics-worker-id hierarchical-sparse-attention-extra-config "
        "lora-drain-wait-threshold model-config-parser prefill-delayer-max-delay-ms prefill-delayer-queue-min-ratio "
        "prefill-only-disable-kv-cache speculative-draft-window-size weight-loader-drop-cache-after-load"
    )),
    ("0.5.13.post1", "0.5.15.post1", "optimistic-prefill-retries"),
    ("0.5.13.post1", "0.5.19", "dsa-prefill-cp-mode enable-dsa-prefill-context-parallel"),
    ("0.5.13.post1", "", (
        "asr-max-buffer-seconds asr-max-concurrent-sessions deepep-dispatcher-output-dtype disable-attn-tp-gather "
        "dsa-decode-backend dsa-prefill-backend dsa-topk-backend enable-deepseek-v4-fp4-indexer encoder-bootstrap-port "
        "encoder-register-urls kv-canary kv-canary-real-data kv-canary-sweep-interval lmcache-config-file "
        "load-snapshot-publish-interval radix-cache-backend trace-modules"
    )),
    ("0.5.14", "0.5.21", "cuda-graph-tc-compiler"),
    ("0.5.14", "", (
        "cp-strategy cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-bs-decode cuda-graph-bs-prefill "
        "cuda-graph-config cuda-graph-max-bs-decode cuda-graph-max-bs-prefill disable-decode-cuda-graph "
        "disable-prefill-cuda-graph disaggregation-decode-extra-slots enable-int8-mamba-checkpoint enable-prefill-cp "
        "flashinfer-allreduce-fusion-backend int8-mamba-ckpt-size mamba-radix-cache-strategy speculative-use-rejection-sampling"
    )),
    ("0.5.15.post1", "", (
        "bf16-gemm-backend dcp-size decode-context-parallel-size decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints "
        "decoupled-spec-rank decoupled-spec-role dsa-paged-mqa-logits-backend enable-linear-replayssm "
        "enable-mamba-cache-stochastic-rounding enable-page-major-kv-layout enable-session-radix-cache enable-tf32-matmul "
        "enable-unified-memory linear-replayssm-cache-len mamba-cache-philox-rounds min-free-slots-delay spec-trace-dir"
    )),
    ("0.5.16", "0.5.19", "enable-gdn-replayssm-spec"),
    ("0.5.16", "", (
        "default-chat-template-kwargs dllm-fdfo elastic-ep-initial-size elastic-ep-join-mode elastic-ep-join-rank-offset "
        "elastic-ep-scale-timeout enable-dsa-cache-layer-split enable-flexkv enable-scattered-sconv enable-waterfill "
        "flexkv-config-file fuseep-mode grpc-port max-ep-size mm-feature-transport no-dllm-fdfo optimistic-prefill-attempts "
        "retraction-policy sidecar sidecar-args smg-grpc-mode smg-http-sidecar-port "
        "speculative-dspark-align-verify-tokens-to-graph-tier speculative-dspark-block-size "
        "speculative-dspark-confidence-sts-path speculative-dspark-sps-table-path"
    )),
    ("0.5.17", "", (
        "dcp-comm-backend dcp-replicate-q-proj dwdp-size enable-cp-decode-attn-tp enable-linear-replayssm-spec "
        "flashinfer-autotune-skip-ops linear-attn-verify-backend mamba-max-states-per-path mm-io-worker-num "
        "mm-processor-worker-num no-dcp-replicate-q-proj return-hidden-states-mode weight-cache-mode weight-cache-socket "
        "weight-cache-timeout"
    )),
    ("0.5.18", "", (
        "allowed-media-domains c128-page-size disaggregation-decode-retraction-backup enable-tp-lm-head-all-to-all "
        "expert-balancedness-report-mode http2-max-concurrent-streams image-processor-backend language-model-only "
        "media-url-max-file-size-mb mlx-enable-sampling mm-global-cache-backend mm-preprocess-cache-size-mb "
        "no-enable-tp-lm-head-all-to-all speculative-draft-kv-cache-dtype startup-weight-load-mode trust-mm-content-hashes"
    )),
    ("0.5.19", "", (
        "deepep-v2-mode dsv4-prefill-backend enable-dense-mlp-attn-tp enable-layernorm-sp enable-lean-attention "
        "enable-shared-experts-attn-tp enable-w4a4-mxfp4-megamoe gated-launch-port hicache-host-memory-mode "
        "hicache-storage-prefetch-retry-max-attempts hicache-storage-prefetch-retry-poll-interval "
        "http2-initial-connection-window-size load-publish-endpoint prefill-decode-interval speculative-dsa-topk-backend"
    )),
    ("0.5.20", "", (
        "dsv4-attn-backend enable-response-store enable-unified-cache-external-linker flashinfer-a2a-dispatch-type "
        "no-ple-offload-embedding ple-offload-backend ple-offload-dir ple-offload-embedding radix-eviction-policy-config "
        "return-input-ids return-output-ids sampling-mask-max-tokens speculative-domino-candidate-pool-size "
        "unified-cache-external-linker-backend uno-lora-path"
    )),
    ("0.5.21", "", (
        "boundary-reduction constrained-json-max-whitespace-cnt context-bucket cuda-graph-max-seq-len-prefill "
        "cuda-graph-prefill-max-context disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill "
        "disaggregation-decode-host-receive-threshold disaggregation-enable-kv-checksum enable-decoder-swa-bounded-replay "
        "enable-encoder-swa-bounded-replay enable-linker-mla-dedup enable-pd-role-switch grpc-response-timeout-secs "
        "hicache-host-memory-fraction otlp-service-name prefill-kv-cache-dequant-dtype shared-experts-tp-size "
        "speculative-draft-sink-size swa-prefix-tails trust-request-chat-template"
    )),
    ("0.5.22", "", (
        "attention-data-parallel-size attn-dp-size disaggregation-decode-allocation-policy dsa-triton-union "
        "enable-dsa-fused-indexer enable-kv-cache-sharding enable-watermark no-enable-dsa-fused-indexer "
        "no-speculative-enable-w4a4-mxfp4-megamoe qsa-indexer-dtype speculative-enable-w4a4-mxfp4-megamoe "
        "speculative-use-block-verification watermark-config"
    )),
    ("0.5.23", "", (
        "enable-amd-monokernel enable-hicache enable-http-worker-reuseport enable-megamoe-for-layernorm-sp "
        "enable-nvidia-megakernel enable-paged-experts enable-return-aux-hidden-states monokernel-backend "
        "no-enable-decoder-swa-bounded-replay no-enable-fused-qk-norm-rope no-enable-tf32-matmul no-mm-enable-dp-encoder "
        "paged-experts-num-resident prefill-decode-interval-min-bs return-aux-hidden-state-layer-ids "
        "unified-cache-external-linker-config"
    )),
)  # fmt: skip

# Flags that the parser has only to refuse them.
REFUSED: tuple[Row, ...] = (
    ("0.4.6.post5", "0.4.6.post5", "enable-flashinfer-mla enable-flashmla"),
    ("0.5.3", "0.5.3.post3", (
        "enable-deepep-moe enable-ep-moe enable-flashinfer-cutedsl-moe enable-flashinfer-cutlass-moe enable-flashinfer-mxfp4-moe "
        "enable-flashinfer-trtllm-moe enable-triton-kernel-moe"
    )),
    ("0.5.18", "0.5.19", "enable-expert-distribution-metrics"),
)  # fmt: skip

# Flags that still work, or are ignored, with a word that they will go.
DEPRECATED: tuple[Row, ...] = (
    ("0.5.1.post3", "0.5.2", (
        "enable-deepep-moe enable-ep-moe enable-flashinfer-cutlass-moe enable-flashinfer-mxfp4-moe enable-flashinfer-trtllm-moe "
        "enable-triton-kernel-moe"
    )),
    ("0.5.8.post1", "0.5.13.post1", "hybrid-kvcache-ratio"),
    ("0.5.8.post1", "0.5.19", "prefill-round-robin-balance"),
    ("0.5.10.post1", "0.5.12.post1", "enable-nan-detection"),
    ("0.5.10.post1", "0.5.13.post1", "enable-piecewise-cuda-graph"),
    ("0.5.10.post1", "0.5.19", "stream-output"),
    ("0.5.11", "0.5.19", "collect-tokens-histogram"),
    ("0.5.13.post1", "0.5.19", (
        "enable-nsa-prefill-context-parallel nsa-decode-backend nsa-prefill-backend nsa-prefill-cp-mode "
        "speculative-dflash-draft-window-size"
    )),
    ("0.5.14", "0.5.19", (
        "cuda-graph-bs cuda-graph-max-bs disable-piecewise-cuda-graph dsa-prefill-cp-mode enable-breakable-cuda-graph "
        "enable-dsa-prefill-context-parallel enable-prefill-context-parallel enforce-piecewise-cuda-graph "
        "mamba-scheduler-strategy piecewise-cuda-graph-compiler piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens "
        "prefill-cp-mode"
    )),
    ("0.5.14", "", "disable-cuda-graph enable-flashinfer-allreduce-fusion"),
    ("0.5.16", "0.5.20", "elastic-ep-rejoin keep-mm-feature-on-device"),
    ("0.5.16", "", "grpc-mode"),
    ("0.5.17", "0.5.19", "enable-gdn-replayssm-spec"),
    ("0.5.18", "", "disable-fast-image-processor"),
    ("0.5.22", "", "enable-dp-attention"),
    ("0.5.23", "", "monokernel-backend"),
)  # fmt: skip

# What --speculative-algorithm may name.
ALGORITHMS: tuple[Row, ...] = (
    ("0.4.6.post5", "", "EAGLE EAGLE3 NEXTN"),
    ("0.5.2", "", "STANDALONE"),
    ("0.5.3", "", "NGRAM"),
    ("0.5.11", "", "DFLASH"),
    ("0.5.12.post1", "", "FROZEN_KV_MTP"),
    ("0.5.16", "", "DSPARK"),
    ("0.5.20", "", "UNO"),
)  # fmt: skip

# Flags whose values are a closed list in these releases: flags, first, last, values. A value stands for all of them, or says from
# which one on (value@first) or up to which one (value@first..last, value@..last).
CHOICES: tuple[tuple[str, str, str, str], ...] = (
    ("attention-backend", "0.4.6.post5", "", (
        "aiter ascend@0.4.9.post6 compressed@0.5.12.post1 cutedsl_mla@0.5.13.post1 cutlass_mla@..0.5.19 dsa@0.5.13.post1 "
        "dsv4@0.5.12.post1 dual_chunk_flash_attn@0.5.1.post3..0.5.19 fa3 fa4@0.5.3 flashinfer flashmla flex_attention@0.5.3 "
        "hpc_ops@0.5.17 hybrid_linear_attn@0.5.2..0.5.2 intel_amx@0.4.9.post6 intel_xpu@0.5.4.post3 llada2_cfg_flashinfer@0.5.22 "
        "minicpm_flashattn@0.5.19 minicpm_flashinfer@0.5.19 nsa@0.5.3 qsa@0.5.20 tokenspeed_mla@0.5.12.post1 torch_native triton "
        "trtllm_mha@0.5.1.post3 trtllm_mla@0.5.1.post3 wave@0.5.1.post3"
    )),
    ("bf16-gemm-backend", "0.5.15.post1", "", "auto cutedsl flashinfer_pr4266@0.5.19..0.5.19 gemv@0.5.19 torch@0.5.17"),
    ("boundary-reduction", "0.5.21", "", "ar auto rs rs+rsv rsv"),
    ("cp-strategy", "0.5.14", "", "interleave zigzag"),
    ("cuda-graph-backend-decode cuda-graph-backend-prefill", "0.5.14", "", "breakable disabled full tc_piecewise@..0.5.21"),
    ("cuda-graph-tc-compiler", "0.5.14", "0.5.21", "eager inductor"),
    ("dcp-comm-backend", "0.5.17", "", "a2a ag_rs fi_a2a"),
    ("decode-attention-backend prefill-attention-backend", "0.4.9.post6", "", (
        "aiter@0.5.1.post3 ascend@0.5.1.post3 compressed@0.5.12.post1 cutedsl_mla@0.5.13.post1 cutlass_mla@..0.5.19 "
        "dsa@0.5.13.post1 dsv4@0.5.12.post1 dual_chunk_flash_attn@0.5.1.post3..0.5.19 fa3 fa4@0.5.3 flashinfer flashmla "
        "flex_attention@0.5.3 hpc_ops@0.5.17 hybrid_linear_attn@0.5.2..0.5.2 intel_amx@0.5.1.post3 intel_xpu@0.5.4.post3 "
        "llada2_cfg_flashinfer@0.5.22 minicpm_flashattn@0.5.19 minicpm_flashinfer@0.5.19 nsa@0.5.3 qsa@0.5.20 "
        "tokenspeed_mla@0.5.12.post1 torch_native triton trtllm_mha@0.5.1.post3 trtllm_mla@0.5.1.post3 wave@0.5.1.post3"
    )),
    ("decoupled-spec-role", "0.5.15.post1", "", "drafter null verifier"),
    ("deepep-dispatcher-output-dtype", "0.5.13.post1", "", "auto bf16 fp8 int8 nvfp4"),
    ("deepep-mode", "0.4.6.post5", "", "auto low_latency normal"),
    ("deepep-v2-mode", "0.5.19", "", "direct hybrid"),
    ("disaggregation-decode-allocation-policy", "0.5.22", "", "early prefill_complete"),
    ("disaggregation-decode-retraction-backup", "0.5.18", "", "cpu_tensor host_pool none@0.5.21"),
    ("disaggregation-mode", "0.4.6.post5", "", "decode null prefill"),
    ("disaggregation-transfer-backend", "0.4.6.post5", "", (
        "ascend@0.4.9.post6 fake@0.5.2 mooncake mooncake_tcp@0.5.13.post1 mori@0.5.9 nixl"
    )),
    ("dsa-decode-backend", "0.5.13.post1", "", (
        "aiter fa3 flashinfer_sparse_mla@0.5.17 flashmla_auto flashmla_kv flashmla_sparse flashmla_sparse_q8@0.5.16 "
        "intel_xpu@0.5.22 tilelang triton@0.5.20 trtllm"
    )),
    ("dsa-paged-mqa-logits-backend", "0.5.15.post1", "", "aiter auto cutedsl deepgemm"),
    ("dsa-prefill-backend", "0.5.13.post1", "", (
        "aiter fa3 flashinfer_sparse_mla@0.5.17 flashmla_auto flashmla_kv flashmla_sparse flashmla_sparse_q8@0.5.16 "
        "intel_xpu@0.5.22 tilelang triton@0.5.20 triton_sparse_mla@0.5.22 trtllm"
    )),
    ("dsa-prefill-cp-mode", "0.5.13.post1", "0.5.19", "in-seq-split round-robin-split"),
    ("dsa-topk-backend", "0.5.13.post1", "", "flashinfer sgl-kernel torch"),
    ("dsa-triton-union", "0.5.22", "", "0 2 4"),
    ("dsv4-attn-backend", "0.5.20", "", "auto flashmla flashmla_mega@0.5.23 trtllm"),
    ("dsv4-prefill-backend", "0.5.19", "", "auto flashmla_sparse flashmla_sparse_q8"),
    ("dtype", "0.4.6.post5", "", "auto bfloat16 float float16 float32 half"),
    ("elastic-ep-backend", "0.5.3.post3", "", "mooncake nixl@0.5.10.post1 none"),
    ("elastic-ep-join-mode", "0.5.16", "", "recover scale"),
    ("encoder-transfer-backend", "0.5.7", "", "auto@0.5.17 mooncake zmq_to_scheduler zmq_to_tokenizer"),
    ("ep-dispatch-algorithm", "0.5.14", "", "dynamic fake lp static"),
    ("expert-balancedness-report-mode", "0.5.18", "", "both off prometheus server_log"),
    ("expert-distribution-recorder-mode", "0.5.14", "", "per_pass per_token stat stat_approx"),
    ("flashinfer-a2a-dispatch-type", "0.5.20", "", "auto bf16 mxfp8 nvfp4"),
    ("flashinfer-allreduce-fusion-backend", "0.5.14", "", "auto cutedsl@0.5.21 mnnvl trtllm"),
    ("flashinfer-mxfp4-moe-precision", "0.5.1.post3", "", "bf16 default@0.5.2 fp8@0.5.19 mxfp4@..0.5.1.post3"),
    ("fp4-gemm-backend", "0.5.8.post1", "", (
        "auto cutlass@0.5.10.post1..0.5.15.post1 flashinfer_cudnn flashinfer_cutedsl@0.5.12.post1 flashinfer_cutlass "
        "flashinfer_trtllm marlin@0.5.13.post1"
    )),
    ("fp8-gemm-backend", "0.5.6.post2", "", (
        "aiter auto cutlass deep_gemm flashinfer_cutedsl@0.5.18 flashinfer_cutlass@0.5.10.post1 flashinfer_deepgemm@0.5.9 "
        "flashinfer_trtllm triton"
    )),
    ("fuseep-mode", "0.5.16", "", "1 2"),
    ("grammar-backend", "0.4.6.post5", "", "llguidance none outlines xgrammar"),
    ("hicache-host-memory-mode", "0.5.19", "", "buffer_only cache"),
    ("hicache-io-backend", "0.4.9.post6", "", "direct kernel kernel_ascend@0.5.5.post3"),
    ("hicache-mem-layout", "0.5.1.post3", "", (
        "layer_first page_first page_first_direct@0.5.3 page_first_kv_split@0.5.5.post3 page_head@0.5.6.post2"
    )),
    ("hicache-storage-backend", "0.4.9.post6", "", (
        "aibrix@0.5.3 dynamic@0.5.3 eic@0.5.3 file hf3fs@0.5.1.post3 mooncake@0.5.1.post3 mori@0.5.15.post1 nixl@0.5.1.post3 "
        "npu_memcache@0.5.20 seaweedfs@0.5.22 shm@0.5.17 sim@0.5.19 simm@0.5.11 tensorcast@0.5.21"
    )),
    ("hicache-storage-prefetch-policy", "0.5.1.post3", "", "best_effort timeout wait_complete"),
    ("hicache-write-policy", "0.4.6.post5", "", "write_back write_through write_through_selective"),
    ("image-processor-backend", "0.5.18", "", "auto pil torchvision"),
    ("kv-cache-dtype", "0.4.6.post5", "", (
        "auto bf16@0.5.4.post3 bfloat16@0.5.4.post3 fp4_e2m1@0.5.4.post3..0.5.20 fp4_mx_block16@0.5.16 fp8_e4m3 fp8_e5m2 "
        "mxfp8@0.5.16 nvfp4@0.5.16"
    )),
    ("kv-canary", "0.5.13.post1", "", "log none raise"),
    ("kv-canary-real-data", "0.5.13.post1", "", "all none partial"),
    ("linear-attn-backend linear-attn-decode-backend linear-attn-prefill-backend", "0.5.10.post1", "", (
        "cutedsl flashinfer flashkda@0.5.15.post1 helion@0.5.18 intel_xpu@0.5.19 nvidia_kda@0.5.17 ptx_kda@0.5.17 triton"
    )),
    ("linear-attn-verify-backend", "0.5.17", "", (
        "cutedsl flashinfer flashkda helion@0.5.18 intel_xpu@0.5.19 nv_cutedsl nvidia_kda ptx_kda triton"
    )),
    ("load-balance-method", "0.4.6.post5", "", (
        "auto@0.5.8.post1 decode_round_robin@0.5.7..0.5.7 follow_bootstrap_room@0.5.8.post1 minimum_tokens@0.5.1.post3..0.5.7 "
        "round_robin shortest_queue@..0.5.7 total_requests@0.5.8.post1 total_tokens@0.5.8.post1"
    )),
    ("load-format", "0.4.6.post5", "", (
        "auto bitsandbytes dummy expert_pack@0.5.19 fastsafetensors@0.5.7 flash_rl@0.5.6.post2 gguf instanttensor@0.5.22 layered "
        "mistral@0.5.10.post1 npcache presharded@0.5.17 private@0.5.6.post2 pt remote remote_instance@0.5.3 "
        "runai_streamer@0.5.10.post1 safetensors sharded_state"
    )),
    ("log-requests-format", "0.5.7", "", "json text"),
    ("log-requests-level", "0.4.6.post5", "", "0 1 2 3@0.4.9.post6"),
    ("lora-backend", "0.5.3", "", "ascend@0.5.5.post3 csgmv torch_native@0.5.6.post2 triton triton_v2@0.5.23"),
    ("lora-eviction-policy", "0.5.3.post3", "", "fifo lru"),
    ("lora-target-modules", "0.4.9.post6", "", (
        "all down_proj embed_tokens@0.5.6.post2 gate_proj gate_up_proj@0.5.1.post3 k_proj kv_a_proj_with_mqa@0.5.12.post1 "
        "kv_b_proj@0.5.12.post1 lm_head@0.5.6.post2 o_proj q_a_proj@0.5.12.post1 q_b_proj@0.5.12.post1 q_proj "
        "qkv_proj@0.5.1.post3 qkvr@0.5.16 up_proj v_proj weights_proj@0.5.14 wk@0.5.14 wo_ud@0.5.16 wq_b@0.5.14"
    )),
    ("mamba-backend", "0.5.9", "", "flashinfer triton"),
    ("mamba-radix-cache-strategy", "0.5.14", "", "auto extra_buffer extra_buffer_lazy no_buffer"),
    ("mamba-scheduler-strategy", "0.5.7", "0.5.13.post1", "auto extra_buffer extra_buffer_lazy@0.5.13.post1 no_buffer"),
    ("mamba-ssm-dtype", "0.5.2", "", "bfloat16 float16@0.5.9 float32"),
    ("max-lora-chunk-size", "0.5.3", "", "128 16 32 64"),
    ("mm-attention-backend", "0.4.6.post5", "", (
        "aiter_attn@0.5.5.post3 amx_attn@0.5.13.post1 ascend_attn@0.5.3 fa3 fa4@0.5.9 flashinfer_cudnn@0.5.10.post1 sdpa "
        "triton_attn xpu_attn@0.5.13.post1"
    )),
    ("mm-feature-transport", "0.5.16", "", "cpu cuda_ipc cuda_vmm@0.5.18"),
    ("mm-global-cache-backend", "0.5.18", "", "mooncake"),
    ("moe-a2a-backend", "0.5.1.post3", "", (
        "ascend_fuseep@0.5.6.post2 ascend_tp@0.5.16 deepep deepep_v2@0.5.19 flashinfer@0.5.9 flashinfer_megamoe@0.5.20 "
        "megamoe@0.5.12.post1 mooncake@0.5.3.post3 mori@0.5.9 nixl@0.5.10.post1 none pplx@0.5.17"
    )),
    ("moe-runner-backend", "0.5.1.post3", "", (
        "aiter@0.5.11 auto cutlass@0.5.3.post3 deep_gemm@0.5.3.post3 experimental_sgl_marlin@0.5.16 "
        "experimental_sgl_trtllm@0.5.13.post1 flashinfer_cutedsl@0.5.3 flashinfer_cutlass flashinfer_megamoe@0.5.20 "
        "flashinfer_mxfp4 flashinfer_trtllm flashinfer_trtllm_routed@0.5.10.post1 hpc_ops@0.5.17 humming@0.5.16 intel_xpu@0.5.19 "
        "lora_cutedsl@0.5.23 lora_marlin@0.5.23 lora_triton@0.5.23 marlin@0.5.12.post1 megamoe@0.5.18 triton triton_kernel"
    )),
    ("monokernel-backend", "0.5.23", "", "amd"),
    ("nsa-decode nsa-prefill", "0.5.3", "0.5.3.post3", "aiter fa3 flashmla_decode flashmla_prefill tilelang"),
    ("nsa-decode-backend nsa-prefill-backend", "0.5.4.post3", "0.5.19", (
        "aiter fa3 flashinfer_sparse_mla@0.5.17 flashmla_auto flashmla_kv flashmla_sparse flashmla_sparse_q8@0.5.16 tilelang "
        "trtllm@0.5.9"
    )),
    ("nsa-prefill-cp-mode", "0.5.8.post1", "0.5.19", "in-seq-split round-robin-split"),
    ("piecewise-cuda-graph-compiler", "0.5.4.post3", "0.5.19", "eager inductor"),
    ("ple-offload-backend", "0.5.20", "", "file pinned"),
    ("prefill-cp-mode", "0.5.10.post1", "0.5.19", "in-seq-split"),
    ("prefill-kv-cache-dequant-dtype", "0.5.21", "", "auto fp8_e4m3 nvfp4"),
    ("qsa-indexer-dtype", "0.5.22", "", "auto bfloat16 fp8_e4m3"),
    ("quantization", "0.4.6.post5", "", (
        "auto-round-int8@0.5.15.post1 auto-round@0.5.4.post3 awq awq_marlin bitsandbytes compressed-tensors@0.5.4.post3 fp8 gguf "
        "gptq gptq_marlin humming@0.5.16 marlin@..0.5.19 mlx_q4@0.5.12.post1 mlx_q8@0.5.12.post1 modelopt modelopt_fp4 "
        "modelopt_fp8@0.5.4.post3 modelopt_mixed@0.5.10.post1 modelslim@0.5.6.post2 moe_wna16 mxfp4@0.5.1.post3 mxfp8@0.5.9 "
        "mxfp_w4a8@0.5.15.post1 nvfp4_online@0.5.14 petit_nvfp4@0.4.9.post6 qoq@..0.5.15.post1 quark@0.5.12.post1 "
        "quark_int4fp8_moe@0.5.8.post1 quark_mxfp4@0.5.13.post1 unquant@0.5.11 w4afp8@0.4.9.post6 w8a8_fp8 w8a8_int8"
    )),
    ("radix-eviction-policy", "0.5.3", "", "lfu lru priority@0.5.11 slru@0.5.10.post1 tlru@0.5.21"),
    ("reasoning-parser", "0.4.6.post5", "", (
        "apertus2509@0.5.13.post1 auto@0.5.12.post1 beam@0.5.23 cohere_command4@0.5.13.post1 deepseek-r1 deepseek-v3@0.5.1.post3 "
        "deepseek-v41@0.5.21 deepseek-v4@0.5.12.post1 dots@0.5.19 gemma4@0.5.11 gigachat35@0.5.21 glm45@0.4.9.post6 "
        "gpt-oss@0.5.1.post3 granite_thinking_parser@0.5.20 hunyuan@0.5.11 inkling@0.5.16 interns1@0.5.7 iquest_q1@0.5.21 "
        "k2_horizon@0.5.20 kimi@0.4.9.post6 kimi_k2@0.5.5.post3 kimi_k3@0.5.17 ling3@0.5.19 mimo@0.5.10.post1 "
        "minimax-append-think@0.5.4.post3 minimax-m3@0.5.16 minimax@0.5.4.post3 mistral@0.5.10.post1 muse@0.5.18 nanbeige@0.5.20 "
        "nano_v3@0.5.7..0.5.9 nemotron_3@0.5.10.post1 poolside_v1@0.5.12.post1 qwen3 qwen3-thinking@0.4.9.post6 "
        "response_template@0.5.23 step3@0.5.1.post3 step3p5@0.5.9"
    )),
    ("remote-instance-weight-loader-backend", "0.5.7", "", "modelexpress@0.5.10.post1 nccl transfer_engine"),
    ("retraction-policy", "0.5.16", "", "length priority"),
    ("return-hidden-states-mode", "0.5.17", "", "full last"),
    ("rl-on-policy-target", "0.5.4.post3", "", "fsdp"),
    ("sampling-backend", "0.4.6.post5", "", "ascend@0.5.5.post3 flashinfer intel_xpu@0.5.21 pytorch"),
    ("sampling-defaults", "0.5.3.post3", "", "model openai"),
    ("schedule-policy", "0.4.6.post5", "", (
        "dfs-weight fcfs hrrn@0.5.20 lof@0.5.1.post3 lpm priority@0.5.3 random routing-key@0.5.8.post1 "
        "shortest-prefill-first@0.5.21"
    )),
    ("speculative-algorithm", "0.4.6.post5", "0.5.11", "DFLASH@0.5.11 EAGLE EAGLE3 NEXTN NGRAM@0.5.3 STANDALONE@0.5.2"),
    ("speculative-attention-mode", "0.5.2", "", "decode prefill"),
    ("speculative-draft-kv-cache-dtype", "0.5.18", "", "auto bf16 bfloat16 fp8_e4m3 fp8_e5m2"),
    ("speculative-draft-load-format", "0.5.3.post3", "", (
        "auto bitsandbytes dummy expert_pack@0.5.19 fastsafetensors@0.5.7 flash_rl@0.5.6.post2 gguf instanttensor@0.5.22 layered "
        "mistral@0.5.10.post1 npcache presharded@0.5.17 private@0.5.6.post2 pt remote remote_instance runai_streamer@0.5.10.post1 "
        "safetensors sharded_state"
    )),
    ("speculative-draft-model-quantization", "0.5.7", "", (
        "auto-round auto-round-int8@0.5.15.post1 awq awq_marlin bitsandbytes compressed-tensors fp8 gguf gptq gptq_marlin "
        "humming@0.5.16 marlin@..0.5.19 mlx_q4@0.5.12.post1 mlx_q8@0.5.12.post1 modelopt modelopt_fp4 modelopt_fp8 "
        "modelopt_mixed@0.5.10.post1 modelslim moe_wna16 mxfp4 mxfp8@0.5.9 mxfp_w4a8@0.5.15.post1 nvfp4_online@0.5.14 petit_nvfp4 "
        "qoq@..0.5.15.post1 quark@0.5.12.post1 quark_int4fp8_moe@0.5.8.post1 quark_mxfp4@0.5.13.post1 unquant w4afp8 w8a8_fp8 "
        "w8a8_int8"
    )),
    ("speculative-dsa-topk-backend", "0.5.19", "", "flashinfer sgl-kernel torch"),
    ("speculative-moe-a2a-backend", "0.5.6.post2", "", (
        "ascend_fuseep ascend_tp@0.5.16 deepep deepep_v2@0.5.19 flashinfer@0.5.9 megamoe@0.5.12.post1 mooncake mori@0.5.9 "
        "nixl@0.5.10.post1 none pplx@0.5.17"
    )),
    ("speculative-moe-runner-backend", "0.5.4.post3", "", (
        "aiter@0.5.11 auto cutlass deep_gemm experimental_sgl_marlin@0.5.16 experimental_sgl_trtllm@0.5.13.post1 "
        "flashinfer_cutedsl flashinfer_cutlass flashinfer_megamoe@0.5.20 flashinfer_mxfp4 flashinfer_trtllm "
        "flashinfer_trtllm_routed@0.5.10.post1 hpc_ops@0.5.17 humming@0.5.16 intel_xpu@0.5.19 lora_cutedsl@0.5.23 "
        "lora_marlin@0.5.23 lora_triton@0.5.23 marlin@0.5.12.post1 megamoe@0.5.18 triton triton_kernel"
    )),
    ("speculative-ngram-match-type", "0.5.3", "", "BFS PROB"),
    ("startup-weight-load-mode", "0.5.18", "", "overlap serial"),
    ("tokenizer-backend", "0.5.11", "", "fastokens huggingface"),
    ("tokenizer-mode", "0.4.6.post5", "", "auto slow"),
    ("tool-call-parser", "0.4.6.post5", "", (
        "apertus2509@0.5.13.post1 auto@0.5.12.post1 beam@0.5.23 cohere_command4@0.5.13.post1 deepseekv3 deepseekv31@0.5.1.post3 "
        "deepseekv32@0.5.6.post2 deepseekv41@0.5.21 deepseekv4@0.5.12.post1 dots@0.5.19 gemma4@0.5.11 gigachat35@0.5.21 "
        "gigachat3@0.5.9 glm45@0.4.9.post6 glm47@0.5.7 glm@0.5.3.post3 gpt-oss@0.5.1.post3 hermes@0.5.9 hunyuan@0.5.11 "
        "inkling@0.5.16 interns1@0.5.7 iquest_q1@0.5.21 k2_horizon@0.5.20 kimi_k2@0.4.9.post6 kimi_k3@0.5.17 lfm2@0.5.9 "
        "ling3@0.5.19 llama3 mimo@0.5.7 minicpm5@0.5.13.post1 minimax-m2@0.5.4.post3 minimax-m3@0.5.16 mistral muse@0.5.18 "
        "nanbeige@0.5.20 poolside_v1@0.5.12.post1 pythonic qwen25 qwen3_coder@0.4.9.post6 qwen@0.5.3.post3 "
        "response_template@0.5.23 spark25@0.5.19 step3@0.5.1.post3 step3p5@0.5.9 trinity@0.5.8.post1"
    )),
    ("unified-cache-external-linker-backend", "0.5.20", "", "dynamic@0.5.23 mooncake mori"),
    ("weight-cache-mode", "0.5.17", "", "client daemon off"),
)  # fmt: skip

# Flags that take no value.
SWITCHES = (
    "abort-on-priority-when-disabled allow-auto-truncate checkpoint-engine-wait-weights-before-ready collect-tokens-histogram "
    "constrained-json-disable-any-whitespace dcp-replicate-q-proj debug-cuda-graph debug-tensor-dump-prefill-only "
    "delete-ckpt-after-loading disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill "
    "disable-attn-tp-gather disable-chunked-prefix-cache disable-cuda-graph disable-cuda-graph-padding disable-custom-all-reduce "
    "disable-decode-cuda-graph disable-fast-image-processor disable-flashinfer-autotune "
    "disable-flashinfer-cutlass-moe-fp4-allgather disable-hicache-numa-detect disable-hybrid-swa-memory "
    "disable-outlines-disk-cache disable-overlap-schedule disable-piecewise-cuda-graph disable-prefill-cuda-graph "
    "disable-priority-preemption disable-radix-cache disable-shared-experts-fusion disable-tokenizer-batch-decode "
    "disaggregation-decode-enable-fake-auto disaggregation-decode-enable-offload-kvcache disaggregation-decode-enable-radix-cache "
    "disaggregation-enable-kv-checksum dllm-fdfo elastic-ep-rejoin enable-adaptive-dispatch-to-encoder "
    "enable-aiter-allreduce-fusion enable-amd-monokernel enable-attn-tp-input-scattered enable-beta-spec "
    "enable-breakable-cuda-graph enable-broadcast-mm-inputs-process enable-cache-report enable-cp-decode-attn-tp "
    "enable-cudagraph-gc enable-custom-logit-processor enable-decoder-swa-bounded-replay enable-deepep-moe "
    "enable-deepep-waterfill enable-deepseek-v4-fp4-indexer enable-dense-mlp-attn-tp enable-deterministic-inference "
    "enable-double-sparsity enable-dp-attention enable-dp-attention-local-control-broadcast enable-dp-lm-head "
    "enable-draft-weights-cpu-backup enable-dsa-cache-layer-split enable-dsa-fused-indexer enable-dsa-prefill-context-parallel "
    "enable-dynamic-batch-tokenizer enable-dynamic-chunking enable-elastic-expert-backup enable-encoder-swa-bounded-replay "
    "enable-ep-moe enable-eplb enable-expert-distribution-metrics enable-flashinfer-allreduce-fusion enable-flashinfer-autotune "
    "enable-flashinfer-cutedsl-moe enable-flashinfer-cutlass-moe enable-flashinfer-mla enable-flashinfer-mxfp4-moe "
    "enable-flashinfer-trtllm-moe enable-flashmla enable-flexkv enable-forward-pass-metrics enable-fp32-lm-head "
    "enable-fused-moe-sum-all-reduce enable-fused-qk-norm-rope enable-gdn-replayssm-spec enable-hicache enable-hierarchical-cache "
    "enable-hisparse enable-http-worker-reuseport enable-http2 enable-int8-mamba-checkpoint enable-kv-cache-sharding "
    "enable-layernorm-sp enable-layerwise-nvtx-marker enable-lean-attention enable-linear-replayssm enable-linear-replayssm-spec "
    "enable-linker-mla-dedup enable-lmcache enable-lora enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding "
    "enable-megamoe-for-layernorm-sp enable-memory-saver enable-metrics enable-metrics-for-all-schedulers enable-mfu-metrics "
    "enable-mis enable-mixed-chunk enable-mm-global-cache enable-mscclpp enable-multi-layer-eagle enable-multimodal "
    "enable-nan-detection enable-nccl-nvls enable-nsa-prefill-context-parallel enable-nvidia-megakernel enable-p2p-check "
    "enable-page-major-kv-layout enable-paged-experts enable-pd-role-switch enable-pdmux enable-piecewise-cuda-graph "
    "enable-precise-embedding-interpolation enable-prefill-context-parallel enable-prefill-cp enable-prefill-delayer "
    "enable-prefix-mm-cache enable-priority-scheduling enable-profile-cuda-graph enable-quant-communications "
    "enable-request-time-stats-logging enable-response-store enable-return-aux-hidden-states enable-return-hidden-states "
    "enable-return-indexer-topk enable-return-routed-experts enable-scattered-sconv enable-session-radix-cache "
    "enable-shared-experts-attn-tp enable-single-batch-overlap enable-ssl-refresh enable-streaming-session enable-strict-thinking "
    "enable-symm-mem enable-tf32-matmul enable-tokenizer-batch-encode enable-torch-compile enable-torch-compile-debug-mode "
    "enable-torch-symm-mem enable-tp-lm-head-all-to-all enable-trace enable-triton-kernel-moe enable-two-batch-overlap "
    "enable-unified-cache-external-linker enable-unified-memory enable-w4a4-mxfp4-megamoe enable-waterfill enable-watermark "
    "enable-weights-cpu-backup encoder-only enforce-disable-flashinfer-allreduce-fusion enforce-piecewise-cuda-graph "
    "enforce-shared-experts-fusion experts-shared-outer-loras export-metrics-to-file flashinfer-mla-disable-ragged grpc-mode "
    "incremental-streaming-output is-embedding keep-mm-feature-on-device language-model-only language-only log-requests "
    "lora-strict-loading lora-use-virtual-experts mlx-enable-sampling mm-enable-dp-encoder no-dcp-replicate-q-proj no-dllm-fdfo "
    "no-enable-decoder-swa-bounded-replay no-enable-dsa-fused-indexer no-enable-fused-qk-norm-rope no-enable-tf32-matmul "
    "no-enable-tp-lm-head-all-to-all no-experts-shared-outer-loras no-lora-strict-loading no-mm-enable-dp-encoder "
    "no-ple-offload-embedding no-record-nolora-graph no-speculative-enable-w4a4-mxfp4-megamoe ple-offload-embedding pre-warm-nccl "
    "prefill-only-disable-kv-cache prefill-round-robin-balance quantize-and-serve record-nolora-graph "
    "remote-instance-weight-loader-start-seed-via-transfer-engine return-input-ids return-output-ids "
    "schedule-low-priority-values-first show-time-cost skip-server-warmup skip-tokenizer-init sleep-on-idle smg-grpc-mode "
    "speculative-adaptive speculative-dspark-align-verify-tokens-to-graph-tier speculative-enable-w4a4-mxfp4-megamoe "
    "speculative-skip-dp-mlp-sync speculative-use-block-verification speculative-use-rejection-sampling stream-output "
    "stream-response-default-include-usage strip-thinking-cache triton-attention-reduce-in-fp32 trust-mm-content-hashes "
    "trust-remote-code trust-request-chat-template use-ray weight-loader-disable-mmap weight-loader-drop-cache-after-load "
    "weight-loader-prefetch-checkpoints "
)  # fmt: skip

# Flags that may stand alone or have values.
BARE = (
    "custom-weight-loader hybrid-kvcache-ratio lora-paths lora-target-modules model-checksum uvicorn-access-log-exclude-prefixes "
)  # fmt: skip

# Names of one and the same argument.
SAME: tuple[str, ...] = (
    "attention-context-parallel-size attn-cp-size",
    "attention-data-parallel-size attn-dp-size",
    "context-bucket cuda-graph-prefill-max-context",
    "cuda-graph-backend-prefill disable-piecewise-cuda-graph enable-breakable-cuda-graph enforce-piecewise-cuda-graph",
    "cuda-graph-bs cuda-graph-bs-decode",
    "cuda-graph-bs-prefill piecewise-cuda-graph-tokens",
    "cuda-graph-max-bs cuda-graph-max-bs-decode",
    "cuda-graph-max-bs-prefill piecewise-cuda-graph-max-tokens",
    "cuda-graph-tc-compiler piecewise-cuda-graph-compiler",
    "data-parallel-size dp-size",
    "dcp-replicate-q-proj no-dcp-replicate-q-proj",
    "dcp-size decode-context-parallel-size",
    "dist-init-addr nccl-init-addr",
    "dllm-fdfo no-dllm-fdfo",
    "dsa-decode-backend nsa-decode-backend",
    "dsa-prefill-backend nsa-prefill-backend",
    "dsa-prefill-cp-mode nsa-prefill-cp-mode",
    "enable-amd-monokernel monokernel-backend",
    "enable-decoder-swa-bounded-replay no-enable-decoder-swa-bounded-replay",
    "enable-dsa-fused-indexer no-enable-dsa-fused-indexer",
    "enable-dsa-prefill-context-parallel enable-nsa-prefill-context-parallel",
    "enable-fused-qk-norm-rope no-enable-fused-qk-norm-rope",
    "enable-gdn-replayssm-spec enable-linear-replayssm-spec",
    "enable-hicache enable-hierarchical-cache",
    "enable-tf32-matmul no-enable-tf32-matmul",
    "enable-tp-lm-head-all-to-all no-enable-tp-lm-head-all-to-all",
    "ep ep-size expert-parallel-size",
    "experts-shared-outer-loras no-experts-shared-outer-loras",
    "grpc-http-sidecar-port smg-http-sidecar-port",
    "hierarchical-sparse-attention-extra-config hisparse-config",
    "incremental-streaming-output stream-output",
    "lora-strict-loading no-lora-strict-loading",
    "mamba-radix-cache-strategy mamba-scheduler-strategy",
    "mm-enable-dp-encoder no-mm-enable-dp-encoder",
    "model model-path",
    "moe-data-parallel-size moe-dp-size",
    "no-ple-offload-embedding ple-offload-embedding",
    "no-record-nolora-graph record-nolora-graph",
    "no-speculative-enable-w4a4-mxfp4-megamoe speculative-enable-w4a4-mxfp4-megamoe",
    "pipeline-parallel-size pp-size",
    "speculative-dflash-draft-window-size speculative-draft-window-size",
    "speculative-draft-model speculative-draft-model-path",
    "tensor-parallel-size tp-size",
)  # fmt: skip
