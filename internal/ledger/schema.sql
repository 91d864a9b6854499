-- The ledger of Weir: one row for each call, and hourly sums of them.
--
-- Anybody may read it while the gateway writes, with any SQLite that knows
-- STRICT tables (3.37 or later); open it read-only. NULL is "not known" and
-- never 0; 0 is a figure. Columns may be added, and then user_version grows;
-- none changes its meaning. Prompts, answers and keys are never stored.
--
--   SELECT datetime(time_ns / 1000000000, 'unixepoch'), key, model, input_tokens, output_tokens
--   FROM calls ORDER BY time_ns DESC LIMIT 10;
--
--   SELECT datetime(time_ns / 1000000000, 'unixepoch'), model, outcome, ttft_ms
--   FROM calls WHERE key = 'alice' AND time_ns >= unixepoch('now', '-1 day') * 1000000000 ORDER BY time_ns DESC;
--
--   SELECT key, sum(input_tokens + output_tokens) AS reported
--   FROM usage_hours WHERE hour >= unixepoch('now', '-30 days') GROUP BY key;

CREATE TABLE calls (
	seq INTEGER PRIMARY KEY,               -- order of arrival in the ledger; grows with gaps, never used again
	id TEXT NOT NULL,                      -- the call's id, as in logs and spans
	attempt INTEGER NOT NULL,              -- tells rows of one call apart; 0 unless there are several
	time_ns INTEGER NOT NULL,              -- received: nanoseconds since 1970-01-01 UTC, wall clock
	key TEXT,                              -- alias or short id of the caller's key, never the key
	model TEXT,                            -- as the caller named it
	response_model TEXT,                   -- as the upstream named what it used
	class TEXT,                            -- class of service: interactive, batch, …
	bench INTEGER,                         -- 1: a load test, by its key; counts for the key, not for objectives
	client_retries INTEGER,                -- how often the client says it sent this call before; NULL: never, or not said
	dialect TEXT,                          -- API that was spoken: openai.chat, anthropic.messages, …
	path TEXT,                             -- of the request's URL, without the query
	stream INTEGER,                        -- 1: the answer came as a stream or, without one, was asked to
	upstream TEXT,                         -- host:port of the last attempt
	request_id TEXT,                       -- the client's X-Request-Id
	response_id TEXT,                      -- the upstream's id of the answer
	trace_id TEXT,                         -- 32 hex digits
	run TEXT,                              -- the client's X-Weir-Run
	status INTEGER,                        -- HTTP status as answered to the client; NULL: nothing was
	outcome TEXT NOT NULL,                 -- completed, client_gone, upstream_error, timeout, stream_error, truncated,
	                                       -- unrecognised, reader_stalled, refused, gateway_shutdown, internal_error,
	                                       -- crashed (the gateway's process died during the call)
	error TEXT,                            -- a short code
	finish_reason TEXT,                    -- the reason; of several choices a JSON object from choice to reason
	terminated INTEGER,                    -- 1: the stream's own last event was seen
	degraded TEXT,                         -- why metering is incomplete; reasons joined by commas

	-- Tokens as the upstream reported them. cached and cache_write are part of
	-- input, reasoning is part of output.
	input_tokens INTEGER,
	output_tokens INTEGER,
	cached_tokens INTEGER,                 -- read from the prompt cache
	cache_write_tokens INTEGER,            -- written to the prompt cache
	reasoning_tokens INTEGER,
	usage_source TEXT NOT NULL,            -- reported, timings, counted, partial; none: nothing was reported
	-- What the gateway expected. Estimates never stand in the columns above.
	estimated_input_tokens INTEGER,
	estimated_output_tokens INTEGER,       -- of a stream that broke off: of what had come; of a crashed call: what such calls
	                                       -- usually write, since what came is not known
	reserved_tokens INTEGER,               -- taken from the limits at admission
	refused_by TEXT,                       -- the limit that refused the call
	would_refuse TEXT,                     -- the limit that would have, in mode shadow

	content_events INTEGER,                -- events that carried model output
	first_content_event INTEGER,           -- number of the first of them, from 0
	parse_errors INTEGER,                  -- events that could not be read

	-- Milliseconds, as "What is measured" in the README defines them.
	ttft_ms REAL,
	ttft_upstream_ms REAL,
	ttfb_ms REAL,
	ttft_visible_ms REAL,
	tpot_ms REAL,
	e2e_ms REAL,
	icl_p50_ms REAL,
	icl_max_ms REAL,
	client_rtt_ms REAL,
	upstream_rtt_ms REAL,

	-- Phases, in milliseconds: the known ones add up to the whole call.
	phase_upload_ms REAL,
	phase_queue_gateway_ms REAL,
	phase_connect_ms REAL,
	phase_upstream_rtt_ms REAL,
	phase_queue_engine_ms REAL,
	phase_frontend_ms REAL,
	phase_prefill_ms REAL,
	phase_engine_ms REAL,
	phase_decode_ms REAL,
	phase_tail_ms REAL,
	phase_delivery_ms REAL,
	phase_sources TEXT,                    -- of the phases that were not measured: "queue_engine=inferred,prefill=engine"

	-- What the engine itself said of this call, in milliseconds.
	engine_queue_ms REAL,
	engine_load_ms REAL,
	engine_prefill_ms REAL,
	engine_decode_ms REAL,
	engine_total_ms REAL,
	engine_e2e_ms REAL,

	attempts INTEGER,                      -- requests started upstream
	replayed INTEGER,                      -- 1: sent again over a fresh connection
	bytes_in INTEGER,                      -- request body
	bytes_out INTEGER,                     -- response body
	client_protocol TEXT,                  -- HTTP/1.1, HTTP/2.0, HTTP/3.0

	-- What engine and GPUs were doing meanwhile, where that is watched.
	surroundings TEXT,                     -- JSON: engine_at_dispatch, engine_at_first_token, gpu … as in /weir/calls:
	                                       -- surroundings ->> '$.engine_at_dispatch.waiting'
	gpu_joules REAL,                       -- the call's share of the energy that the GPUs took

	-- By what this call counts in usage_hours:
	--   reported, timings, counted, partial   the upstream's figures
	--   estimated   it reported nothing, and the estimates stand in
	--   none        it may have used tokens, and nothing is known of them
	--   unused      it used none: refused by a limit, or it never reached an
	--               upstream, or the upstream answered with an error status
	provenance TEXT GENERATED ALWAYS AS (CASE
		WHEN usage_source <> 'none' THEN usage_source
		WHEN outcome = 'refused' THEN 'unused'
		WHEN outcome = 'upstream_error' AND status >= 400 THEN 'unused'
		WHEN attempts = 0 AND coalesce(status, 400) >= 400 THEN 'unused'
		WHEN estimated_input_tokens IS NULL AND estimated_output_tokens IS NULL THEN 'none'
		ELSE 'estimated' END) VIRTUAL,

	UNIQUE (id, attempt)
) STRICT;

-- By time, with the key beside it: the calls of a key are found without reading
-- those of others. Say a period where you can: without one a key that has made few
-- calls costs some tenths of a second for each million of all. An index by key
-- would cost every call a page of the disk, a quarter of what a row takes.
CREATE INDEX calls_by_time ON calls (time_ns, key);

-- Sums of calls by the UTC hour in which they were received. Kept when the rows
-- themselves are deleted. An empty text is what is NULL in calls.
CREATE TABLE usage_hours (
	hour INTEGER NOT NULL,                 -- its beginning: seconds since 1970-01-01 UTC
	key TEXT NOT NULL,
	model TEXT NOT NULL,
	class TEXT NOT NULL,
	upstream TEXT NOT NULL,
	provenance TEXT NOT NULL,              -- as in calls
	calls INTEGER NOT NULL,
	completed INTEGER NOT NULL,            -- of those, with outcome completed
	refused INTEGER NOT NULL,              -- of those, with outcome refused
	-- What upstreams reported; 0 where provenance says that they did not.
	input_tokens INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	cached_tokens INTEGER NOT NULL,
	cache_write_tokens INTEGER NOT NULL,
	reasoning_tokens INTEGER NOT NULL,
	-- What stands in where provenance is estimated, 0 elsewhere. Cached,
	-- cache-write and reasoning tokens are not estimated.
	estimated_input_tokens INTEGER NOT NULL,
	estimated_output_tokens INTEGER NOT NULL,
	PRIMARY KEY (hour, key, model, class, upstream, provenance)
) STRICT, WITHOUT ROWID;

-- The same by UTC day, so that a report over months need not add up hours. Both
-- are written in one transaction, with the calls themselves.
CREATE TABLE usage_days (
	day INTEGER NOT NULL,                  -- its beginning: seconds since 1970-01-01 UTC
	key TEXT NOT NULL,
	model TEXT NOT NULL,
	class TEXT NOT NULL,
	upstream TEXT NOT NULL,
	provenance TEXT NOT NULL,
	calls INTEGER NOT NULL,
	completed INTEGER NOT NULL,
	refused INTEGER NOT NULL,
	input_tokens INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	cached_tokens INTEGER NOT NULL,
	cache_write_tokens INTEGER NOT NULL,
	reasoning_tokens INTEGER NOT NULL,
	estimated_input_tokens INTEGER NOT NULL,
	estimated_output_tokens INTEGER NOT NULL,
	PRIMARY KEY (day, key, model, class, upstream, provenance)
) STRICT, WITHOUT ROWID;

-- How far usage_hours and usage_days reach: one row, written in the transaction
-- that adds the calls themselves.
CREATE TABLE usage_watermark (
	only INTEGER PRIMARY KEY CHECK (only = 1),
	seq INTEGER NOT NULL                   -- calls up to this seq are in them; none has a higher one
) STRICT;
INSERT INTO usage_watermark VALUES (1, 0);
