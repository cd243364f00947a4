# For vLLM 0.32.
# --swap-space is left out: removed after 0.16.0 (preempted requests are computed anew, not swapped out)
# --num-lookahead-slots is left out: removed after 0.10.2 (speculative decoding reserves its slots by itself)
# --max-num-partial-prefills is left out: removed after 0.24.0 (--long-prefill-token-threshold alone limits long prompts)
# --disable-log-requests is left out: removed after 0.16.0 (requests are logged only with --enable-log-requests)
# --scheduler-policy is written --scheduling-policy
# --max-num-batch-token is left out: no flag of vLLM 0.32, did you mean --max-num-batched-tokens?
HF_TOKEN="${HF_TOKEN:?}" \
  NOTE='it'"'"'s $HOME' \
  vllm serve 'some-org/Some Model-70B' \
  --served-model-name llama 'llama 70b' \
  --host 0.0.0.0 \
  --port 8123 \
  --tensor-parallel-size 2 \
  --pipeline-parallel-size 2 \
  --data-parallel-size 2 \
  --max-model-len 16384 \
  --gpu-memory-utilization 0.85 \
  --block-size 32 \
  --no-enable-prefix-caching \
  --enable-chunked-prefill \
  --max-num-batched-tokens 1000 \
  --max-num-seqs 128 \
  --long-prefill-token-threshold 600 \
  --enable-prompt-tokens-details \
  --enable-auto-tool-choice \
  --tool-call-parser hermes \
  --reasoning-parser qwen3 \
  --no-enable-log-requests \
  --scheduling-policy priority \
  --seed=-1 \
  --enforce-eager \
  --chat-template '{{ it'"'"'s a $(template) }}' \
  --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq"}' \
  --allowed-origins '["https://a.example"]'
