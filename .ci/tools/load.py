"""The load that everybody puts on the simulated engine, and the engine, whose steps a long answer keeps even."""
import http.client
import json
import os
import signal
import string
import subprocess
import threading
import time

import lib

# The last call runs alone. Of calls that end in the same step a tool may take any for the last one, and guidellm leaves
# out of its rate what ended after that.
CALLS, CONCURRENCY, WARMUP = 25, 4, 4
INPUT, OUTPUT = 128, 48  # tokens
SECONDS = 300            # for one run of one tool, its start included

# Steps of 40 ms whatever is in them. A call spends 1,580 ms before the queue, waits for a step to end and has its first
# token after the next one: 1,640 ms, give or take half a step, whenever it was sent. A call takes 3,520 ms in all, so
# that the 20 ms that a tool may need between two calls make little of it, while a definition that is off by one token
# shows: a step is 2.4 % of the time to the first token.
STEP_MS = 40
ENGINE = ["--seed", "1", "--slots", "16", "--frontend", "1580ms", "--prefill", "0", "--prefill-token", "0", "--decode",
          "%dms" % STEP_MS, "--decode-sequence", "0", "--context", "200000"]
MODEL = "weir-sim"

# What the template of a chat adds to a prompt there.
TEMPLATE = 7

# An engine that idles begins its first step with whichever call comes first, and the others wait for it. One answer
# that never ends keeps it in steps.
ENDLESS = {"model": MODEL, "stream": True, "max_tokens": 190000, "ignore_eos": True,
           "messages": [{"role": "user", "content": "Go on."}]}


class Engine(lib.Process):
    """The simulated engine under an endless answer, whose rhythm tells how evenly this machine runs."""

    def __init__(self, binary, directory):
        self.port, self.late, self.lock = lib.free_port(), [], threading.Lock()
        at = "%s:%d" % (lib.HOST, self.port)
        super().__init__("engine", [binary, "sim", "--listen", at, "--model", MODEL, *ENGINE], directory)

    def __enter__(self):
        try:
            self.wait_for(lambda: lib.listening(self.port), 30)
            self.connection = http.client.HTTPConnection(lib.HOST, self.port, timeout=30)
            self.connection.request("POST", "/v1/chat/completions", json.dumps(ENDLESS),
                                    {"Content-Type": "application/json"})
            self.answer = self.connection.getresponse()
            if self.answer.status != 200:
                raise RuntimeError("the engine answered %d" % self.answer.status)
            self.reader = threading.Thread(target=self.listen, daemon=True)
            self.reader.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def listen(self):
        """Notes how much later than a step each piece of the endless answer comes."""
        before = None
        try:
            while self.answer.read1(1 << 16):
                now = time.monotonic()
                if before is not None:
                    with self.lock:
                        self.late.append((now - before) * 1000 - STEP_MS)
                before = now
        except (OSError, http.client.HTTPException):
            pass  # the engine was ended

    def uneven(self):
        """The share of steps since the last question that came more than half a step late."""
        with self.lock:
            late, self.late = self.late, []
        if not self.reader.is_alive():
            raise RuntimeError("the endless answer ended")
        return sum(ms > STEP_MS / 2 for ms in late) / max(len(late), 1)

    @property
    def url(self):
        return "http://%s:%d" % (lib.HOST, self.port)


def prompts(count):
    """Prompts of INPUT tokens as the engine counts them, a word a token, different from their first word on."""
    letters = string.ascii_lowercase
    for i in range(count):
        yield " ".join(letters[i // 26] + letters[i % 26] + letters[j % 26] for j in range(INPUT - TEMPLATE))


def offline(directory):
    """The environment of a tool that shall reach nothing but loopback, and write nothing outside of directory."""
    nowhere = "http://%s:9" % lib.HOST  # where nobody listens
    return {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HOME": os.path.join(directory, "hf"),
            "HOME": directory, "XDG_CACHE_HOME": directory,
            "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "http_proxy": nowhere, "https_proxy": nowhere,
            "NO_PROXY": lib.HOST + ",localhost", "no_proxy": lib.HOST + ",localhost"}


def run(arguments, directory, environment=None):
    """Runs a program to its end, and ends what it leaves behind."""
    log = os.path.join(directory, "run.log")
    with open(log, "wb") as out:
        child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=directory,
                                 env=dict(os.environ, **(environment or {})), start_new_session=True)
        try:
            status = child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    if status != 0:
        what = "was not done after %d s" % SECONDS if status is None else "ended with status %d" % status
        with open(log, errors="replace") as f:
            raise RuntimeError("%s %s: %s" % (os.path.basename(arguments[0]), what, f.read()[-1500:]))
