package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	skewNoticed = 5 * time.Second
	skewHarmful = time.Minute
)

// checkClock sets the endpoint's clock beside ours.
func checkClock(ctx context.Context, v *visit) Finding {
	head := v.headOf(ctx)
	if head.err != nil {
		return grey("not compared because a request without content was not answered")
	}
	date, err := http.ParseTime(head.header.Get("Date"))
	if err != nil {
		return grey("not compared because the endpoint does not say its time")
	}
	if head.header.Get("Age") != "" {
		return grey("not compared because the answer comes from a cache")
	}
	skew := skewOf(date, head.sent, head.answered)
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	size := max(skew, -skew)
	if size <= skewNoticed {
		return green("the endpoint's clock agrees with ours")
	}
	title := fmt.Sprintf("the endpoint's clock is %s %s ours", size.Round(time.Second), side)
	next := "let both machines set their clocks by NTP (timedatectl shows whether this one does)"
	if size <= skewHarmful {
		return yellow(title, "Logs and traces of the two do not fit together.", next)
	}
	return red(title, "Certificates and signed tokens are judged by the clock, and logs and traces of the two do not fit together.", next)
}

// skewOf is the least by which a server's clock must be ahead of ours, negative
// where it is behind, if it wrote its time, cut to the second, between two
// instants of ours.
func skewOf(date, sent, answered time.Time) time.Duration {
	if least := date.Sub(answered.Round(0)); least > 0 {
		return least
	}
	if most := date.Add(time.Second).Sub(sent.Round(0)); most < 0 {
		return most
	}
	return 0
}
