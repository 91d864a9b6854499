package ledger

import "strings"

// sums are the columns of usage_hours that add up, each with what a group of
// calls of one provenance adds to it.
var sums = []struct{ name, adds string }{
	{"calls", "count(*)"},
	{"completed", "sum(outcome = 'completed')"},
	{"refused", "sum(outcome = 'refused')"},
	{"input_tokens", "coalesce(sum(input_tokens), 0)"},
	{"output_tokens", "coalesce(sum(output_tokens), 0)"},
	{"cached_tokens", "coalesce(sum(cached_tokens), 0)"},
	{"cache_write_tokens", "coalesce(sum(cache_write_tokens), 0)"},
	{"reasoning_tokens", "coalesce(sum(reasoning_tokens), 0)"},
	{"estimated_input_tokens", "iif(provenance = 'estimated', coalesce(sum(estimated_input_tokens), 0), 0)"},
	{"estimated_output_tokens", "iif(provenance = 'estimated', coalesce(sum(estimated_output_tokens), 0), 0)"},
}

// rollUpSQL adds the calls after ?1, a seq, to usage_hours.
var rollUpSQL = func() string {
	var names, adds, updates []string
	for _, s := range sums {
		names = append(names, s.name)
		adds = append(adds, s.adds)
		updates = append(updates, s.name+" = "+s.name+" + excluded."+s.name)
	}
	return `INSERT INTO usage_hours (hour, key, model, class, upstream, provenance, ` + strings.Join(names, ", ") + `)
		SELECT time_ns / 3600000000000 * 3600 AS h, coalesce(key, '') AS k, coalesce(model, '') AS m,
			coalesce(class, '') AS c, coalesce(upstream, '') AS u, provenance AS p, ` + strings.Join(adds, ", ") + `
		FROM calls WHERE seq > ?1 GROUP BY h, k, m, c, u, p
		ON CONFLICT (hour, key, model, class, upstream, provenance) DO UPDATE SET ` + strings.Join(updates, ", ")
}()
