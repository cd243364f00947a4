# For vLLM 0.6.3.post1.
# --data-parallel-size is left out: not in vLLM 0.6.3.post1, first seen in 0.8.5
# --long-prefill-token-threshold is left out: not in vLLM 0.6.3.post1, first seen in 0.7.3
# --enable-prompt-tokens-details is left out: not in vLLM 0.6.3.post1, first seen in 0.7.3
# --enable-reasoning is left out: not in vLLM 0.6.3.post1, first seen in 0.7.3
# --reasoning-parser is left out: not in vLLM 0.6.3.post1, first seen in 0.7.3
# --max-num-partial-prefills is left out: not in vLLM 0.6.3.post1, first seen in 0.7.3
# --enable-log-requests is left out: not in vLLM 0.6.3.post1, first seen in 0.10.2
# --scheduler-policy is written --scheduling-policy
# --max-num-batch-token is left out: no flag of vLLM 0.6.3.post1, did you mean --max-num-batched-tokens?
# --kv-events-config is left out: not in vLLM 0.6.3.post1, first seen in 0.9.2
HF_TOKEN="${HF_TOKEN:?}" \
  NOTE='it'"'"'s $HOME' \
  vllm serve 'some-org/Some Model-70B' \
  --served-model-name llama 'llama 70b' \
  --host 0.0.0.0 \
  --port 8123 \
  --tensor-parallel-size 2 \
  --pipeline-parallel-size 2 \
  --max-model-len 16384 \
  --gpu-memory-utilization 0.85 \
  --block-size 32 \
  --enable-chunked-prefill \
  --max-num-batched-tokens 1000 \
  --max-num-seqs 128 \
  --enable-auto-tool-choice \
  --tool-call-parser hermes \
  --swap-space 4 \
  --num-lookahead-slots 0 \
  --disable-log-requests \
  --scheduling-policy priority \
  --seed=-1 \
  --enforce-eager \
  --chat-template '{{ it'"'"'s a $(template) }}' \
  --allowed-origins '["https://a.example"]'
