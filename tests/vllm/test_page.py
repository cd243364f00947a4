"""What an engine's `/metrics` tells."""

from __future__ import annotations

import contextlib
import time

import pytest

from gateway.vllm.page import MOST_LINES, CacheConfig, Total, read_page

# As vLLM 0.32 writes it, shortened; two data-parallel ranks.
V1 = """\
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",\
gpu_memory_utilization="0.9",kv_cache_size_tokens="24560",num_gpu_blocks="1535"} 1.0
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="1",\
gpu_memory_utilization="0.9",kv_cache_size_tokens="24560",num_gpu_blocks="1535"} 1.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 99.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 600.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 400.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 500.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 7777.0
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 2200.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 6.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 9999.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 0.5
vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 2.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 0.25
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 10.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="m"} 1.0
vllm:request_prefill_time_seconds_count{engine="0",model_name="m"} 10.0
process_cpu_seconds_total 12.0
"""

V0 = """\
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.94
vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="100"} 1.0
"""


def test_what_two_ranks_tell_is_one_engine() -> None:
    page = read_page(V1)
    assert page is not None
    assert page.cache == CacheConfig(16, 49_120, True, 0.9)
    assert page.ttft == Total(2.0, 12.0)
    assert page.queue == Total(0.25, 10.0)
    assert page.prefill == Total(1.0, 10.0)
    assert (page.queried, page.hit, page.hit_rate) == (1000.0, 500.0, 0.5)
    assert page.kv_usage == 0.75, "the fullest rank's"
    assert (page.preemptions, page.finished) == (2.0, 11.0)
    assert (page.running, page.waiting, page.busy) == (7.0, 1.0, True)
    assert (page.prompted, page.mean_prompt) == (2200.0, 200.0)


def test_an_engine_of_the_0_6_era_names_things_otherwise() -> None:
    page = read_page(V0)
    assert page is not None
    assert page.cache == CacheConfig(16, 1600, False, None)
    assert (page.kv_usage, page.hit_rate) == (0.5, 0.94)
    assert (page.queried, page.hit, page.ttft, page.running) == (None, None, None, None)


def test_its_hit_rate_of_minus_one_means_that_the_cache_is_off() -> None:
    page = read_page(V0.replace("0.94", "-1.0"))
    assert page is not None and page.hit_rate is None


def test_no_lookup_is_no_rate() -> None:
    page = read_page("vllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\n")
    assert page is not None and (page.queried, page.hit_rate) == (0.0, None)


@pytest.mark.parametrize("size", ["None", "", "-1", "x"])
def test_a_cache_whose_size_is_not_told_is_unknown(size: str) -> None:
    page = read_page(V1.replace('"24560"', f'"{size}"', 1).replace('"1535"', '"None"', 1))
    assert page is not None and page.cache.tokens is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e300"])
def test_what_no_engine_counts_to_is_not_told(value: str) -> None:
    page = read_page(
        f"vllm:time_to_first_token_seconds_sum {value}\nvllm:time_to_first_token_seconds_count 1\n"
        f"vllm:request_queue_time_seconds_sum 1\nvllm:request_queue_time_seconds_count {value}\n"
        f"vllm:num_requests_running {value}\n"
    )
    assert page is not None and (page.ttft, page.queue, page.running) == (None, None, None)


@pytest.mark.parametrize(("blocks", "share"), [("9" * 400, "nan"), ("9" * 5000, "inf")])
def test_a_configuration_that_no_engine_has_is_not_told(blocks: str, share: str) -> None:
    page = read_page(
        f'vllm:cache_config_info{{block_size="16",gpu_memory_utilization="{share}",'
        f'num_gpu_blocks="{blocks}"}} 1.0\n'
    )
    assert page is not None and page.cache == CacheConfig(16, None, None, None)


def test_every_slice_of_a_long_page_is_read() -> None:
    line = 'vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 9.0\n'
    page = read_page("".join(f"vllm:num_preemptions_total 1.0\n{line * 400}" for _ in range(50)))
    assert page is not None and page.preemptions == 50.0


@pytest.mark.parametrize(
    "page",
    [
        "".join(f'vllm:request_success_total{{m="{n}"}} 1\n' for n in range(MOST_LINES * 25)),
        "vllm:request_success_total{" + 'a="b",' * 1_000_000 + "} 1\n",
    ],
    ids=["lines", "labels"],
)
def test_a_page_that_no_engine_writes_takes_no_long_time(page: str) -> None:
    began = time.process_time()
    with contextlib.suppress(ValueError):
        read_page(page)
    assert time.process_time() - began < 1.0


def test_another_servers_page_is_no_engines() -> None:
    assert read_page("process_cpu_seconds_total 12.0\n# HELP vllm:x y\n") is None
    assert read_page('{"detail":"Not Found"}') is None


def test_broken_text_is_an_error() -> None:
    with pytest.raises(ValueError):
        read_page("vllm:num_requests_running{engine= 3\n")


def test_what_was_counted_between_two_pages() -> None:
    earlier, later = (
        read_page(V1),
        read_page(
            V1.replace('hits_total{engine="0",model_name="m"} 500', "hits_total{} 590").replace(
                'queries_total{engine="0",model_name="m"} 600', "queries_total{} 700"
            )
        ),
    )
    assert earlier is not None and later is not None
    lately = later.since(earlier)
    assert (lately.queried, lately.hit, lately.hit_rate) == (100.0, 90.0, 0.9)
    assert (lately.finished, lately.preemptions, lately.prompted) == (0.0, 0.0, 0.0)
    assert lately.kv_usage == later.kv_usage, "a gauge is of now"
    assert earlier.since(later) == earlier, "it began anew in between"


def test_times_between_two_pages() -> None:
    name = "vllm:request_queue_time_seconds"
    earlier = read_page(f"{name}_sum 1.0\n{name}_count 10\n")
    later = read_page(f"{name}_sum 1.5\n{name}_count 30\n")
    assert earlier is not None and later is not None
    assert later.since(earlier).queue == Total(0.5, 20.0)
