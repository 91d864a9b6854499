package corpus

import (
	"encoding/base64"
	"fmt"
	"strings"
)

var (
	nouns = strings.Fields("user order cache token buffer session record index queue worker node graph price invoice shard cursor message payload header bucket window frame signal report account channel region sensor metric label")
	verbs = strings.Fields("get set load store parse find merge split check build send read write update remove open close flush count filter sort append decode encode validate resolve")
	types = strings.Fields("int string bool float64 []byte error time.Duration map[string]int")
	notes = []string{
		"keep the order stable, callers rely on it", "the caller holds the lock", "returns false when nothing was found",
		"not safe for concurrent use", "an empty name means the default", "retry at most three times", "counts bytes, not characters",
		"see the table in the manual", "bounded, so that a hostile peer cannot fill it", "times are in UTC",
	}
)

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// names are the identifiers of one piece of code, in the three customary styles.
type names struct{ r *random }

func (n names) noun() string { return pick(n.r, nouns) }
func (n names) camel() string {
	s := pick(n.r, verbs) + title(n.noun())
	if n.r.chance(40) {
		s += title(n.noun())
	}
	return s
}
func (n names) snake() string {
	s := pick(n.r, verbs) + "_" + n.noun()
	if n.r.chance(40) {
		s += "_" + n.noun()
	}
	return s
}
func (n names) loud() string { return strings.ToUpper(n.noun() + "_" + n.noun()) }
func (n names) number() int  { return n.r.spread(1, 10000) }
func (n names) note() string { return pick(n.r, notes) }

// Each language has pieces; the even ones are for one half, the odd ones for the other.
var pieces = map[string][]func(n names) string{
	"go": {
		func(n names) string {
			f, t := title(n.camel()), title(n.noun())
			return fmt.Sprintf("// %s: %s.\nfunc (s *%s) %s(%s %s) (%s, error) {\n\tif s.%s == nil {\n\t\treturn nil, errors.New(\"%s: no %s\")\n\t}\n\treturn s.%s[%d:], nil\n}\n",
				f, n.note(), t, f, n.noun(), pick(n.r, types), pick(n.r, types), n.noun(), n.noun(), n.noun(), n.noun(), n.number())
		},
		func(n names) string {
			x := n.noun()
			return fmt.Sprintf("\tfor i, %s := range %ss {\n\t\tif %s.%s > %d && !%s(%s) {\n\t\t\tcontinue // %s\n\t\t}\n\t\t%s += %s.%s\n\t}\n",
				x, x, x, n.noun(), n.number(), n.camel(), x, n.note(), n.camel(), x, title(n.noun()))
		},
		func(n names) string {
			return fmt.Sprintf("type %s struct {\n\tmu sync.Mutex // guards %s\n\t%s map[string]*%s\n\t%s int64 // %s\n}\n\n",
				title(n.camel()), n.noun(), n.noun(), title(n.noun()), n.camel(), n.note())
		},
		func(n names) string {
			return fmt.Sprintf("const (\n\tmax%s = %d << %d\n\tdefault%s = %d * time.Millisecond\n)\n\nvar err%s = fmt.Errorf(\"%s %%q: %%w\", %s, err)\n",
				title(n.noun()), n.number(), n.r.below(20), title(n.noun()), n.number(), title(n.noun()), n.note(), n.camel())
		},
		func(n names) string {
			return fmt.Sprintf("\tswitch %s := %s(ctx, %d); {\n\tcase %s < 0:\n\t\treturn %s, false\n\tcase errors.Is(err, io.EOF):\n\t\t%s = append(%s, %s...)\n\tdefault:\n\t\tpanic(\"unreachable\")\n\t}\n",
				n.noun(), n.camel(), n.number(), n.noun(), n.noun(), n.noun(), n.noun(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("func Test%s(t *testing.T) {\n\tgot, want := %s(%d), \"%s\"\n\tif got != want {\n\t\tt.Errorf(\"got %%v, want %%v\", got, want)\n\t}\n}\n\n",
				title(n.camel()), n.camel(), n.number(), n.note())
		},
	},
	"python": {
		func(n names) string {
			return fmt.Sprintf("def %s(self, %s: int = %d, *, %s=None) -> list[str]:\n    \"\"\"%s.\"\"\"\n    if not %s:\n        raise ValueError(f\"%s {%s!r}\")\n    return [x.%s for x in self._%s if x]\n\n",
				n.snake(), n.noun(), n.number(), n.noun(), title(n.note()), n.noun(), n.noun(), n.noun(), n.noun(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("class %s(Base):\n    %s = %d\n\n    def __init__(self, %s):\n        super().__init__()\n        self.%s = %s  # %s\n\n",
				title(n.camel()), n.loud(), n.number(), n.noun(), n.noun(), n.noun(), n.note())
		},
		func(n names) string {
			return fmt.Sprintf("with open(path, \"rb\") as f:\n    %s = json.load(f)\n    for key, value in sorted(%s.items()):\n        if key.startswith(\"%s_\"):\n            %s[key] += value / %d.0\n",
				n.noun(), n.noun(), n.noun(), n.snake(), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("try:\n    %s = await %s(timeout=%d)\nexcept (KeyError, TimeoutError) as e:\n    log.warning(\"%s: %%s\", e)\n    continue\nfinally:\n    %s.close()\n",
				n.noun(), n.snake(), n.number(), n.note(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("df = df.groupby([\"%s\", \"%s\"])[\"%s\"].mean().reset_index()\nassert len(df) <= %d, \"%s\"\nx = np.zeros((%d, %d), dtype=np.float32)\n",
				n.noun(), n.noun(), n.snake(), n.number(), n.note(), n.number(), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("@dataclass(frozen=True)\nclass %s:\n    %s: str\n    %s: dict[str, float] = field(default_factory=dict)\n\n    @property\n    def %s(self):\n        return %d * self.%s\n\n",
				title(n.noun()), n.noun(), n.snake(), n.noun(), n.number(), n.noun())
		},
	},
	"javascript": {
		func(n names) string {
			return fmt.Sprintf("export async function %s({ %s, %s = %d } = {}) {\n  const res = await fetch(`/api/%s/${%s}`, { method: 'POST' });\n  if (!res.ok) throw new Error(`%s: ${res.status}`);\n  return res.json();\n}\n",
				n.camel(), n.noun(), n.camel(), n.number(), n.noun(), n.noun(), n.note())
		},
		func(n names) string {
			return fmt.Sprintf("const %s = items\n  .filter((x) => x.%s > %d)\n  .map(({ %s, ...rest }) => ({ ...rest, [%s]: %s }));\n",
				n.camel(), n.noun(), n.number(), n.noun(), n.noun(), n.camel())
		},
		func(n names) string {
			return fmt.Sprintf("    <div className=\"%s-%s mt-4 flex\" onClick={() => %s(%d)}>\n      {%s ? <%s size={%d} /> : null}\n    </div>\n",
				n.noun(), n.noun(), n.camel(), n.number(), n.noun(), title(n.camel()), n.r.below(64))
		},
		func(n names) string {
			return fmt.Sprintf("/**\n * %s.\n * @param {string} %s\n */\nclass %s extends EventEmitter {\n  #%s = new Map();\n  %s(%s) {\n    this.#%s.set(%s, Date.now() + %d);\n  }\n}\n",
				title(n.note()), n.noun(), title(n.camel()), n.noun(), n.camel(), n.noun(), n.noun(), n.noun(), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("useEffect(() => {\n  let cancelled = false;\n  %s(%s).then((v) => !cancelled && set%s(v));\n  return () => { cancelled = true; }; // %s\n}, [%s]);\n",
				n.camel(), n.noun(), title(n.noun()), n.note(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("describe('%s', () => {\n  it('%s', () => {\n    expect(%s(%d)).toEqual({ %s: '%s' });\n  });\n});\n",
				n.camel(), n.note(), n.camel(), n.number(), n.noun(), n.noun())
		},
	},
	"sql": {
		func(n names) string {
			return fmt.Sprintf("SELECT o.%s_id, COUNT(*) AS %s, SUM(o.%s)\nFROM %ss o\nJOIN %ss p ON p.id = o.%s_id\nWHERE o.created_at >= '20%02d-%02d-%02d' AND p.%s > %d\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT %d;\n\n",
				n.noun(), n.snake(), n.noun(), n.noun(), n.noun(), n.noun(), n.r.between(10, 30), n.r.between(1, 12), n.r.between(1, 28), n.noun(), n.number(), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s_%s (\n    id BIGSERIAL PRIMARY KEY,\n    %s TEXT NOT NULL, -- %s\n    %s NUMERIC(%d, 2) DEFAULT %d\n);\n",
				n.noun(), n.noun(), n.noun(), n.note(), n.snake(), n.r.between(4, 18), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("UPDATE %ss SET %s = COALESCE(%s, %d), updated_at = NOW() WHERE id IN (%d, %d, %d) AND %s IS NULL;\n",
				n.noun(), n.noun(), n.noun(), n.number(), n.number(), n.number(), n.number(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("INSERT INTO %ss (%s, %s, %s) VALUES\n  ('%s', %d, TRUE),\n  ('%s', %d, FALSE)\nON CONFLICT (%s) DO NOTHING;\n",
				n.noun(), n.noun(), n.snake(), n.noun(), n.noun(), n.number(), n.note(), n.number(), n.noun())
		},
		func(n names) string {
			return fmt.Sprintf("WITH ranked AS (\n  SELECT *, ROW_NUMBER() OVER (PARTITION BY %s_id ORDER BY %s DESC) AS rn FROM %ss\n)\nDELETE FROM ranked WHERE rn > %d;\n",
				n.noun(), n.noun(), n.noun(), n.number())
		},
		func(n names) string {
			return fmt.Sprintf("CREATE INDEX CONCURRENTLY idx_%s_%s ON %ss USING btree (%s, lower(%s)); -- %s\n",
				n.noun(), n.noun(), n.noun(), n.snake(), n.noun(), n.note())
		},
	},
}

// code returns about size bytes of a language.
func code(lang string, half int, r *random, size int) string {
	var b strings.Builder
	all := pieces[lang]
	for b.Len() < size {
		b.WriteString(all[r.below(len(all)/2)*2+half](names{r}))
	}
	return b.String()
}

// document returns about size bytes of JSON, indented or not.
func document(half int, r *random, size int) string {
	n := names{r}
	var value func(depth int, indent string) string
	indented := r.chance(50)
	value = func(depth int, indent string) string {
		switch k := r.below(10); {
		case depth > 0 && k < 3:
			line, end, colon := "", "", ":"
			if indented {
				line, end, colon = "\n"+indent+"  ", "\n"+indent, ": "
			}
			var parts []string
			for range r.between(2, 6) {
				key := n.snake()
				if half == 1 {
					key = n.camel()
				}
				parts = append(parts, fmt.Sprintf("%s%q%s%s", line, key, colon, value(depth-1, indent+"  ")))
			}
			return "{" + strings.Join(parts, ",") + end + "}"
		case depth > 0 && k < 4:
			var parts []string
			for range r.between(1, 5) {
				parts = append(parts, value(0, indent))
			}
			return "[" + strings.Join(parts, ",") + "]"
		case k < 6:
			return fmt.Sprint(r.spread(1, 1000000))
		case k < 7:
			return fmt.Sprintf("%d.%02d", r.below(1000), r.below(100))
		case k < 8:
			return pick(r, []string{"true", "false", "null"})
		case k < 9:
			return fmt.Sprintf("%q", n.note())
		}
		return fmt.Sprintf("%q", n.noun())
	}
	var parts []string
	for total := 0; total < size; {
		p := value(3, "")
		if len(p) < 20 {
			continue
		}
		total += len(p)
		parts = append(parts, p)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// packed returns about size bytes of base64 of random bytes.
func packed(r *random, size int) string {
	raw := make([]byte, size*3/4)
	for i := range raw {
		raw[i] = byte(r.next())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// lines returns about size bytes of a log or of comma-separated values.
func lines(half int, r *random, size int) string {
	n := names{r}
	var b strings.Builder
	for b.Len() < size {
		when := fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02d.%03dZ", r.between(20, 30), r.between(1, 12), r.between(1, 28), r.below(24), r.below(60), r.below(60), r.below(1000))
		if half == 0 {
			fmt.Fprintf(&b, "%s %s [%s] %s=%d ip=10.%d.%d.%d msg=%q\n", when, pick(r, []string{"INFO", "WARN", "ERROR"}), n.camel(), n.noun(), n.number(), r.below(256), r.below(256), r.below(256), n.note())
		} else {
			fmt.Fprintf(&b, "%d,%s,%s,%d.%d,%08x-%04x,%s\n", n.number(), when[:10], n.noun(), n.number(), r.below(100), uint32(r.next()), uint16(r.next()), n.note())
		}
	}
	return b.String()
}
