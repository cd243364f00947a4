"""Which flags `vllm serve` had, by release.

Read from the sources of `RELEASES` (`vllm/engine/arg_utils.py` and the server's `cli_args.py`) by
`tests/vllm/reading.py`, which writes this table and compares it with a release at hand. A line is
`first..last kind: names`, without a last release for flags the newest one still has. What came or
went between two of the releases is dated by the later, or earlier, of them.
"""

from __future__ import annotations

RELEASES = (
    "0.6.3",
    "0.7.3",
    "0.8.5",
    "0.9.2",
    "0.10.2",
    "0.12.0",
    "0.16.0",
    "0.20.2",
    "0.24.0",
    "0.28.0",
    "0.32.0",
)

TABLE = """\
0.6.3..0.6.3 switch: enable-prefix-caching worker-use-ray
0.6.3..0.6.3 value: max-context-len-to-capture quantization-param-path
0.6.3..0.7.3 store-boolean: disable-logprobs-during-spec-decoding enable-chunked-prefill
  multi-step-stream-outputs
0.6.3..0.7.3 switch: disable-custom-all-reduce enable-lora enable-prompt-adapter
  fully-sharded-loras ray-workers-use-nsight speculative-disable-mqa-scorer
0.6.3..0.7.3 value: ngram-prompt-lookup-max ngram-prompt-lookup-min num-speculative-tokens
  spec-decoding-acceptance-method speculative-disable-by-batch-size
  speculative-draft-tensor-parallel-size speculative-max-model-len speculative-model
  speculative-model-quantization typical-acceptance-sampler-posterior-alpha
  typical-acceptance-sampler-posterior-threshold
0.6.3..0.8.5 switch: disable-sliding-window enforce-eager skip-tokenizer-init trust-remote-code
0.6.3..0.9.2 switch: allow-credentials disable-fastapi-docs disable-frontend-multiprocessing
  disable-log-requests enable-auto-tool-choice return-tokens-as-token-ids use-v2-block-manager
0.6.3..0.9.2 value: device long-lora-scaling-factors max-prompt-adapter-token max-prompt-adapters
  num-scheduler-steps override-neuron-config prompt-adapters qlora-adapter-name-or-path
  tokenizer-pool-extra-config tokenizer-pool-size tokenizer-pool-type
0.6.3..0.10.2 switch: disable-async-output-proc
0.6.3..0.10.2 value: guided-decoding-backend lora-extra-vocab-size max-seq-len-to-capture
  num-lookahead-slots preemption-mode rope-scaling rope-theta scheduler-delay-factor
0.6.3..0.16.0 value: swap-space
0.6.3.. switch: disable-log-stats
0.6.3.. value: allowed-headers allowed-methods allowed-origins api-key block-size chat-template
  code-revision collect-detailed-traces config config-format cpu-offload-gb
  distributed-executor-backend download-dir dtype gpu-memory-utilization host ignore-patterns
  kv-cache-dtype limit-mm-per-prompt load-format lora-dtype lora-modules max-cpu-loras max-log-len
  max-logprobs max-lora-rank max-loras max-model-len max-num-batched-tokens max-num-seqs
  max-parallel-loading-workers middleware mm-processor-kwargs model model-loader-extra-config
  num-gpu-blocks-override otlp-traces-endpoint pipeline-parallel-size port quantization
  response-role revision root-path scheduling-policy seed served-model-name ssl-ca-certs
  ssl-cert-reqs ssl-certfile ssl-keyfile tensor-parallel-size tokenizer tokenizer-mode
  tokenizer-revision tool-call-parser tool-parser-plugin uvicorn-log-level
0.7.3..0.7.3 switch: calculate-kv-scales enable-lora-bias
0.7.3..0.8.5 switch: disable-mm-preprocessor-cache enable-reasoning enable-sleep-mode
0.7.3..0.9.2 switch: enable-prompt-tokens-details enable-request-id-headers
0.7.3..0.10.2 value: override-pooler-config
0.7.3..0.12.0 value: task
0.7.3..0.16.0 value: logits-processor-pattern
0.7.3..0.24.0 value: max-long-partial-prefills max-num-partial-prefills
0.7.3.. boolean: enable-prefix-caching
0.7.3.. value: additional-config allowed-local-media-path chat-template-content-format
  compilation-config generation-config hf-overrides kv-transfer-config
  long-prefill-token-threshold model-impl override-generation-config reasoning-parser
  scheduler-cls worker-cls
0.8.5..0.8.5 switch: disable-cascade-attn
0.8.5..0.9.2 boolean: enable-prompt-adapter multi-step-stream-outputs
0.8.5..0.9.2 switch: disable-uvicorn-access-log enable-server-load-tracking enable-ssl-refresh
0.8.5..0.10.2 boolean: enable-lora-bias
0.8.5..0.20.2 value: hf-token
0.8.5..0.24.0 boolean: calculate-kv-scales
0.8.5.. boolean: disable-chunked-mm-input disable-custom-all-reduce enable-chunked-prefill
  enable-expert-parallel enable-lora fully-sharded-loras ray-workers-use-nsight use-tqdm-on-load
0.8.5.. value: data-parallel-size hf-config-path prefix-caching-hash-algo
  show-hidden-metrics-for-version speculative-config worker-extension-cls
0.9.2..0.9.2 boolean: disable-mm-preprocessor-cache enable-multimodal-encoder-data-parallel
  enable-reasoning
0.9.2..0.9.2 switch: enable-force-include-usage expand-tools-even-if-tool-choice-none
0.9.2..0.10.2 boolean: eplb-log-balancedness guided-decoding-disable-additional-properties
  guided-decoding-disable-any-whitespace guided-decoding-disable-fallback
0.9.2..0.10.2 value: eplb-step-interval eplb-window-size num-redundant-experts
0.9.2..0.12.0 value: cuda-graph-sizes
0.9.2..0.24.0 value: override-attention-dtype
0.9.2.. boolean: disable-cascade-attn disable-hybrid-kv-cache-manager disable-sliding-window
  enable-eplb enable-prompt-embeds enable-sleep-mode enforce-eager skip-tokenizer-init
  trust-remote-code
0.9.2.. switch: headless
0.9.2.. value: api-server-count data-parallel-address data-parallel-backend data-parallel-rank
  data-parallel-rpc-port data-parallel-size-local data-parallel-start-rank kv-events-config
  log-config-file media-io-kwargs pt-load-map-location
0.10.2..0.12.0 switch: disable-mm-preprocessor-cache enable-multimodal-encoder-data-parallel
0.10.2..0.16.0 boolean: disable-frontend-multiprocessing disable-log-requests
0.10.2.. boolean: allow-credentials async-scheduling data-parallel-hybrid-lb disable-fastapi-docs
  disable-uvicorn-access-log enable-auto-tool-choice enable-force-include-usage enable-log-outputs
  enable-log-requests enable-prompt-tokens-details enable-request-id-headers
  enable-server-load-tracking enable-ssl-refresh enable-tokenizer-info-endpoint
  exclude-tools-when-tool-choice-none interleave-mm-strings kv-sharing-fast-prefill
  log-error-stack return-tokens-as-token-ids skip-mm-profiling
0.10.2.. value: convert decode-context-parallel-size default-mm-loras eplb-config
  h11-max-header-count h11-max-incomplete-event-size io-processor-plugin kv-cache-memory-bytes
  logits-processors logprobs-mode mamba-cache-dtype mamba-ssm-cache-dtype mm-encoder-tp-mode
  mm-processor-cache-gb runner safetensors-load-strategy tool-server uds
0.12.0.. boolean: data-parallel-external-lb disable-nccl-for-dp-synchronization enable-dbo
  enable-mm-embeds kv-cache-metrics tokens-only trust-request-chat-template
0.12.0.. switch: aggregate-engine-logging
0.12.0.. value: all2all-backend allowed-media-domains cp-kv-cache-interleave-size
  cudagraph-capture-sizes dbo-decode-token-threshold dbo-prefill-token-threshold
  dcp-kv-cache-interleave-size ec-transfer-config expert-placement-strategy
  kv-cache-metrics-sample kv-offloading-backend kv-offloading-size mamba-block-size master-addr
  master-port max-cudagraph-capture-size mm-encoder-attn-backend mm-processor-cache-type
  mm-shm-cache-max-object-size-mb nnodes node-rank optimization-level pooler-config
  prefill-context-parallel-size reasoning-parser-plugin stream-interval structured-outputs-config
  video-pruning-rate
0.16.0.. boolean: allow-deprecated-quantization cudagraph-metrics enable-flashinfer-autotune
  enable-layerwise-nvtx-tracing enable-log-deltas enable-logging-iteration-details
  enable-mfu-metrics enable-offline-docs enable-return-routed-experts enable-tower-connector-lora
  mm-encoder-only specialize-active-lora
0.16.0.. value: attention-backend attention-config default-chat-template-kwargs
  disable-access-log-for-endpoints kernel-config mamba-cache-mode profiler-config ssl-ciphers
  ubatch-size weight-transfer-config
0.20.2.. boolean: enable-elastic-ep enable-ep-weight-filter enable-flash-late-interaction
  enable-mamba-cache-stochastic-rounding fail-on-environ-validation language-model-only numa-bind
  scheduler-reserve-full-isl
0.20.2.. switch: grpc
0.20.2.. value: cpu-offload-params dcp-comm-backend distributed-timeout-seconds
  gdn-prefill-backend ir-op-priority kv-cache-dtype-skip-layers lora-target-modules mamba-backend
  mamba-cache-philox-rounds mm-tensor-ipc moe-backend numa-bind-cpus numa-bind-nodes
  offload-backend offload-group-size offload-num-in-group offload-params offload-prefetch-step
  performance-mode reasoning-config renderer-num-workers shutdown-timeout
0.24.0.. boolean: enable-cumem-allocator enable-mixed-moe-lora-format hf-token jit-monitor-verbose
  use-fp64-gumbel
0.24.0.. switch: data-parallel-multi-port-external-lb
0.24.0.. value: cpu-distributed-timeout-seconds data-parallel-supervisor-port device-ids
  diffusion-config dp-supervisor-probe-failure-threshold dp-supervisor-probe-interval-s
  dp-supervisor-probe-timeout-s fingerprint-mode fingerprint-value linear-backend
  mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin
  mm-encoder-fp8-scale-save-path prefill-schedule-interval quantization-config
  safetensors-prefetch-block-size safetensors-prefetch-num-threads spec-method spec-model
  spec-tokens watermark
0.28.0..0.28.0 boolean: enable-bf16x3-router-gemm
0.28.0.. boolean: cohere-is-reasoning-model enable-fault-tolerance enable-moe-shared-loras
  enable-per-request-metrics mm-device-do-normalize return-sampling-mask use-replayssm
0.28.0.. value: cohere-format ec-manager-config fault-tolerance-config jit-monitor-mode
  kda-prefill-backend mamba-ssu-algorithm max-num-scheduled-tokens mm-hasher-algorithm
  mm-ipc-gpu-memory-gb mm-processor-device model-class-overrides prefix-match-unit
  replayssm-buffer-len video-pruning-method
0.32.0.. boolean: dcp-q-replicate enable-batch-sharded-sampling enable-hc-sp
  enable-mamba-shared-prefix-checkpoint enable-nccl-comm-suspend enable-scale-out
  enable-shm-tensor-arena enable-trace-replay long-prefill-token-threshold-adaptive
  sleep-mode-offload-cudagraph swa-bounded-replay trust-request-mm-kwargs
0.32.0.. value: anthropic-disabled-thinking-effort aux-output-config custom-histogram-buckets
  device-memory-utilization dp-sync-interval elastic-ep-max-dp-size engram-config grpc-port
  kda-decode-backend log-level logging-config max-lora-cls-labels max-num-active-seqs
  max-num-queued-reqs max-num-queued-tokens per-request-spec-decode-metrics
  prefix-cache-retention-interval sleep-preserve-parameter-names sparse-indexer-topk-backend
  sse-keep-alive-interval tool-strict-level watermark-config
"""
