package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// adds is what a group of calls of one provenance adds to each of sums, as SQL
// says it.
var adds = [numSums]string{
	sumCalls:           "count(*)",
	sumCompleted:       "sum(outcome = 'completed')",
	sumRefused:         "sum(outcome = 'refused')",
	sumInput:           "coalesce(sum(input_tokens), 0)",
	sumOutput:          "coalesce(sum(output_tokens), 0)",
	sumCached:          "coalesce(sum(cached_tokens), 0)",
	sumCacheWrite:      "coalesce(sum(cache_write_tokens), 0)",
	sumReasoning:       "coalesce(sum(reasoning_tokens), 0)",
	sumEstimatedInput:  "iif(provenance = 'estimated', coalesce(sum(estimated_input_tokens), 0), 0)",
	sumEstimatedOutput: "iif(provenance = 'estimated', coalesce(sum(estimated_output_tokens), 0), 0)",
}

// sumsOf selects from calls what is to stand in usage_hours or, with seconds of
// a day, in usage_days.
func sumsOf(seconds int64) string {
	return fmt.Sprintf(`SELECT time_ns / %d000000000 * %d AS t, coalesce(key, '') AS k, coalesce(model, '') AS m,
		coalesce(class, '') AS c, coalesce(upstream, '') AS u, provenance AS p, %s
		FROM calls GROUP BY t, k, m, c, u, p`, seconds, seconds, strings.Join(adds[:], ", "))
}

// sumUp fills usage_hours and usage_days from calls that SQL has put there.
func sumUp(t testing.TB, conn *sqlite3.Conn) {
	t.Helper()
	if err := conn.Exec("INSERT INTO usage_hours " + sumsOf(hour) + "; INSERT INTO usage_days " + sumsOf(day)); err != nil {
		t.Fatal(err)
	}
}

// sumsHold checks that both tables of sums are those of the rows.
func sumsHold(t *testing.T, conn *sqlite3.Conn) {
	t.Helper()
	for table, seconds := range map[string]int64{"usage_hours": hour, "usage_days": day} {
		want, got := "SELECT * FROM ("+sumsOf(seconds)+")", "SELECT * FROM "+table
		for _, pair := range [][2]string{{want, got}, {got, want}} {
			if n, err := intOf(conn, "SELECT count(*) FROM ("+pair[0]+" EXCEPT "+pair[1]+")"); err != nil || n != 0 {
				t.Fatalf("%s differs from the rows in %d: %v", table, n, err)
			}
		}
	}
}

// TestSumsAreThoseOfTheRows: whatever comes in a group, the sums are those of the
// rows after it, and each row is there once.
func TestSumsAreThoseOfTheRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	db, err := openDatabase(context.Background(), filepath.Join(t.TempDir(), "usage.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	there := make(map[string]bool)
	for range 60 / underRace {
		var group []pending
		fresh, bad, amends := 0, 0, 0
		for range r.IntN(4 * rowsAtOnce) {
			rec := anyRow(r, r.IntN(3) == 0)
			rec.ID = fmt.Sprint("call", r.IntN(1000)) // some of which are there
			rec.Time = noon.Add(time.Duration(r.Int64N(int64(60 * time.Hour))))
			rec.Key, rec.Model, rec.Class, rec.Upstream = pick("", "alice", "bob"), pick("m", "n", ""), pick("interactive", "batch"), pick("", "u:1")
			switch r.IntN(20) {
			case 0: // a row that cannot be: it has no outcome
				group = append(group, pending{fields: appendStart(nil, start(fmt.Sprint("bad", r.Int())), time.Now)})
				bad++
				continue
			case 1: // one that is cut short
				b := appendRow(nil, rec, time.Now)
				b = append(b, byte(colRun)<<1|1)
				group = append(group, pending{fields: append(b, 200)})
				bad++
				continue
			case 2:
				s := start(rec.ID)
				s.Time = rec.Time
				group = append(group, pending{fields: appendStart(nil, s, time.Now), crashed: true})
			case 3:
				group = append(group, pending{fields: appendAmendment(nil, amendmentOf(r, rec.ID)), amends: true})
				amends++
				continue
			default:
				group = append(group, pending{fields: appendRow(nil, rec, time.Now)})
			}
			if !there[rec.ID] {
				there[rec.ID] = true
				fresh++
			}
		}
		added, amended, refused, err := db.add(group)
		if err != nil || added != fresh || refused != bad || amended != amends {
			t.Fatalf("%d added, %d refused, %d amended, %v: want %d, %d, %d", added, refused, amended, err, fresh, bad, amends)
		}
		sumsHold(t, db.conn)
		if n, err := intOf(db.conn, "SELECT count(*) FROM calls"); err != nil || int(n) != len(there) {
			t.Fatalf("%d rows, want %d; %v", n, len(there), err)
		}
		if n, err := intOf(db.conn, "SELECT seq >= (SELECT coalesce(max(seq), 0) FROM calls) FROM usage_watermark"); err != nil || n != 1 {
			t.Fatalf("a row lies beyond the watermark: %v", err)
		}
	}
}
