package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/sim"
)

// SimArgs are the arguments of Sim.
type SimArgs struct {
	// Listen is the TCP address to listen on; port 0 takes a free one.
	Listen string
	// Engine says what is imitated.
	Engine sim.Config
	// Grace is how long streams may go on once the context is done; then they
	// are cut. 0 cuts them at once.
	Grace time.Duration
}

// Sim serves a simulated engine until the context is done, and says on out
// where it listens and how to try it.
func Sim(ctx context.Context, args SimArgs, out io.Writer) (err error) {
	engine, err := sim.Start(args.Engine)
	if err != nil {
		return err
	}
	defer engine.Close()
	listener, err := net.Listen("tcp", args.Listen)
	if err != nil {
		return listenError(args.Listen, err)
	}
	server := engine.Server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	if _, err := io.WriteString(out, simGreeting(engine.Config(), reachable(listener.Addr()))); err != nil {
		server.Close()
		<-served
		return fmt.Errorf("say where the simulated engine listens: %w", err)
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve the simulated engine on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), args.Grace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		engine.Close() // cuts the streams that are left
		err = server.Close()
		if err != nil {
			return fmt.Errorf("close the simulated engine: %w", err)
		}
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the simulated engine on %s: %w", listener.Addr(), err)
	}
	return nil
}

func listenError(address string, err error) error {
	hint := "give a host and a port, for example --listen 127.0.0.1:8000"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop what listens there, or choose another port with --listen, for example --listen 127.0.0.1:0 for a free one"
	case errors.Is(err, syscall.EACCES):
		hint = "choose a port above 1023 with --listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine has no such address: try --listen 127.0.0.1:8000"
	}
	return fmt.Errorf("listen on %s: %w: %s", address, err, hint)
}

// reachable names an address as a client on this machine would: a listener on
// all addresses is reached by the loopback one.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
}

func simGreeting(cfg sim.Config, address string) string {
	return fmt.Sprintf(`Simulated %[1]s engine with model %[2]s listens on http://%[3]s

Try it:
  curl -N http://%[3]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"stream":true,"messages":[{"role":"user","content":"How wide is the river?"}]}'

Its metrics: http://%[3]s/metrics
Stop it with Ctrl-C.
`, cfg.Quirks, cfg.Model, address)
}

const simShort = "Imitates an LLM inference engine, for trying things without a GPU"

func configureSim(cmd *cobra.Command) {
	args := SimArgs{Grace: 2 * time.Second}
	cfg := &args.Engine
	var quirks string
	costs := map[string]*time.Duration{}

	flags := cmd.Flags()
	flags.StringVar(&args.Listen, "listen", "127.0.0.1:8000", "address to listen on; port 0 takes a free one")
	flags.StringVar(&quirks, "quirks", string(sim.VLLM), "engine to imitate: vllm, sglang or llamacpp")
	flags.StringVar(&cfg.Model, "model", "weir-sim", "model name; requests may name any")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "decides all text, lengths and ids")
	flags.IntVar(&cfg.Slots, "slots", 32, "sequences that run at once")
	flags.IntVar(&cfg.QueueLimit, "queue", 4096, "sequences that may wait; beyond them calls get 503")
	flags.IntVar(&cfg.BatchTokens, "batch-tokens", 2048, "tokens that one step computes")
	flags.IntVar(&cfg.ModelLen, "context", 32768, "tokens that a prompt and its answer may have together")
	flags.IntVar(&cfg.KVBlocks, "kv-blocks", 0, "KV cache in blocks of 16 tokens; 0 has room for four full contexts")
	flags.BoolVar(&cfg.NoPrefixCache, "no-prefix-cache", false, "compute every prompt from its start")
	for _, cost := range []struct {
		name  string
		field *time.Duration
		value time.Duration
		usage string
	}{
		{"prefill", &cfg.PrefillBase, 50 * time.Millisecond, "cost of a step that reads prompts"},
		{"prefill-token", &cfg.PrefillPerToken, 100 * time.Microsecond, "added for each prompt token"},
		{"decode", &cfg.DecodeBase, 14 * time.Millisecond, "cost of a step that writes tokens"},
		{"decode-sequence", &cfg.DecodePerSequence, 200 * time.Microsecond, "added for each sequence in it"},
		{"frontend", &cfg.FrontendTime, 0, "time before a call enters the queue"},
		{"ping", &cfg.PingInterval, 0, "silence after which a stream gets a comment line; 0 sends none"},
	} {
		flags.DurationVar(cost.field, cost.name, cost.value, cost.usage)
		costs[cost.name] = cost.field
	}
	flags.BoolVar(&cfg.PerRequestMetrics, "per-request-metrics", false, "add the engine's own figures to each answer")
	flags.BoolVar(&cfg.Reasoning, "reasoning", false, "think before each answer")
	flags.BoolVar(&cfg.ForceUsage, "force-usage", false, "send usage on streams that did not ask for it")
	flags.IntVar(&cfg.StreamInterval, "stream-interval", 1, "tokens in each chunk of a stream")
	flags.StringVar(&cfg.Fault, "fault", "", "what goes wrong with every call, from the list above")
	flags.StringArrayVar(&cfg.FaultScript, "fault-script", nil, "the same for one call; give it once for each call, \"\" for none, and it begins anew after the last")
	flags.DurationVar(&args.Grace, "grace", args.Grace, "how long streams may go on after Ctrl-C")

	cmd.Long = simHelp()
	cmd.Example = `  weir sim
  weir sim --quirks llamacpp --slots 2 --listen 127.0.0.1:8081
  weir sim --per-request-metrics --prefill 200ms --fault-script "" --fault-script truncate:5`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		cfg.Quirks = sim.Quirks(quirks)
		for name, field := range costs {
			if *field < 0 {
				return fmt.Errorf("--%s is %v: give a time of 0 or more, like 20ms", name, *field)
			}
			if *field == 0 {
				*field = sim.None // 0 stands for the default there
			}
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return Sim(ctx, args, cmd.OutOrStdout())
	}
}

func simHelp() string {
	var b strings.Builder
	b.WriteString(`Imitates an LLM inference engine with continuous batching: a queue, slots, a KV
cache with preemption, a prefix cache. The text it writes means nothing, but when
it writes it follows the costs given here, and the same seed and the same
requests give the same answers.

It serves /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages,
/v1/embeddings, SGLang's /generate, llama.cpp's /completion, and /v1/models,
/health, /version and /metrics.

It can misbehave: for all calls with --fault, by turns with --fault-script, or
for one call with the request header X-Sim-Fault. Several faults are joined by
commas. The faults, with an example of their number:

`)
	for _, k := range sim.FaultKinds {
		fmt.Fprintf(&b, "  %-16s %s\n", k.Kind, k.Meaning)
	}
	return b.String()
}
