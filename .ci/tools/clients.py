"""Runs the load with each tool and reads its figures from the file that it writes, never from its screen.

Each function returns a dictionary of figures, in milliseconds or per second, under the names that `weir bench` has for
them. "calls", "failed", "input" and "output" (tokens of a call) say whether it was the same load, "version" by what.
"""
import json
import os

import load


def weir(binary, engine, directory, profile):
    saved = os.path.join(directory, "weir.json")
    load.run([binary, "bench", "--url", engine.url, "--model", load.MODEL, "--concurrency", str(load.CONCURRENCY),
              "--calls", str(load.CALLS), "--warmup", str(load.WARMUP), "--repeat", "1", "--input", str(load.INPUT),
              "--output", str(load.OUTPUT), "--ignore-eos", "--metrics-profile", profile, "--quiet", "--json=" + saved],
             directory)
    with open(saved) as f:
        told = json.load(f)
    figures = told["runs"][0]["repeats"][0]
    found = {"version": told["environment"]["weir"], "calls": figures["succeeded"],
             "failed": figures["calls"] - figures["succeeded"],
             "input": figures["input_tokens"]["mean"], "output": figures["output_tokens"]["mean"],
             "calls/s": figures["calls_per_second"], "output tokens/s": figures["output_tokens_per_second"]}
    for name, key in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"), ("E2E", "e2e_ms")):
        for figure in ("mean", "p50"):
            if figures.get(key):
                found[name + " " + figure] = figures[key][figure]
    return found


def aiperf(binary, engine, directory):
    """aiperf counts tokens with a tokenizer of its own unless --use-server-token-count is given, and loads one even then.

    Its built-in one is fetched from the network, so it is given a local one, which counts words, in the shape of
    Hugging Face's cache: offline it takes no path.
    """
    words(os.path.join(directory, "hf", "hub", "models--weir--words"))
    asked = os.path.join(directory, "prompts.jsonl")
    with open(asked, "w") as f:
        for text in load.prompts(load.CALLS + load.WARMUP):
            f.write(json.dumps({"text": text, "output_length": load.OUTPUT}) + "\n")
    artifacts = os.path.join(directory, "artifacts")
    load.run([binary, "profile", "--model", load.MODEL, "--url", engine.url, "--endpoint-type", "chat", "--streaming",
              "--concurrency", str(load.CONCURRENCY), "--request-count", str(load.CALLS),
              "--warmup-request-count", str(load.WARMUP), "--input-file", asked, "--custom-dataset-type", "single-turn",
              "--extra-inputs", "ignore_eos:true", "--tokenizer", "weir/words", "--use-server-token-count",
              "--no-gpu-telemetry", "--no-server-metrics", "--no-auto-plot", "--ui", "none",
              "--output-artifact-dir", artifacts], directory, load.offline(directory))
    with open(os.path.join(artifacts, "profile_export_aiperf.json")) as f:
        told = json.load(f)
    found = {"version": told["aiperf_version"], "calls": told["request_count"]["avg"],
             "failed": told["completed_request_count"]["avg"] - told["request_count"]["avg"],
             "input": told["usage_prompt_tokens"]["avg"], "output": told["output_sequence_length"]["avg"],
             "calls/s": told["request_throughput"]["avg"], "output tokens/s": told["output_token_throughput"]["avg"]}
    for name, key in (("TTFT", "time_to_first_token"), ("ITL", "inter_token_latency"), ("E2E", "request_latency")):
        if told[key]["unit"] != "ms":
            raise RuntimeError("aiperf gives %s in %s" % (key, told[key]["unit"]))
        found[name + " mean"], found[name + " p50"] = told[key]["avg"], told[key]["p50"]
    return found


def words(home):
    """Writes a tokenizer to which every word is one token."""
    snapshot = os.path.join(home, "snapshots", "1")
    os.makedirs(snapshot, exist_ok=True)
    os.makedirs(os.path.join(home, "refs"), exist_ok=True)
    with open(os.path.join(home, "refs", "main"), "w") as f:
        f.write("1")
    with open(os.path.join(snapshot, "tokenizer.json"), "w") as f:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                   "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                   "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}}, f)
    with open(os.path.join(snapshot, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}, f)


def guidellm(binary, engine, directory):
    """guidellm takes counts from the usage, and needs no tokenizer for prompts that it is given. With a length asked for,
    it asks for ignore_eos by itself. It has no calls to warm up with."""
    asked, saved = os.path.join(directory, "prompts.jsonl"), os.path.join(directory, "guidellm.json")
    with open(asked, "w") as f:
        for text in load.prompts(load.CALLS):
            f.write(json.dumps({"prompt": text, "output_tokens_count": load.OUTPUT}) + "\n")
    load.run([binary, "run", "--backend", "kind=openai_http,target=%s,model=%s" % (engine.url, load.MODEL),
              "--profile", "kind=concurrent,streams=%d" % load.CONCURRENCY,
              "--constraint", "kind=max_requests,count=%d" % load.CALLS, "--data", "kind=json_file,path=" + asked,
              "--output", "kind=json,path=" + saved, "--disable-console"], directory, load.offline(directory))
    with open(saved) as f:
        told = json.load(f)
    version, told = told["metadata"]["guidellm_version"], told["benchmarks"][0]["metrics"]
    of = lambda key: told[key]["successful"]
    totals = told["request_totals"]
    found = {"version": version, "calls": totals["successful"], "failed": totals["total"] - totals["successful"],
             "input": of("prompt_token_count")["mean"], "output": of("output_token_count")["mean"],
             "calls/s": of("requests_per_second")["mean"], "output tokens/s": of("output_tokens_per_second")["mean"]}
    for name, key, unit in (("TTFT", "time_to_first_token_ms", 1), ("TPOT", "time_per_output_token_ms", 1),
                            ("ITL", "inter_token_latency_ms", 1), ("E2E", "request_latency", 1000)):
        found[name + " mean"], found[name + " p50"] = of(key)["mean"] * unit, of(key)["percentiles"]["p50"] * unit
    return found


TOOLS = {"aiperf": aiperf, "guidellm": guidellm}
