"""Unit tests for promtool, made from the formulas of the SRE workbook and not from the rules.

At constant traffic, after a past without bad calls, a share of r of all calls is bad from one minute on. The workbook
says when the rule of a window pair fires: factor x (1 - target) x long / r minutes later ("Alerting on SLOs", chapter 5).
Prometheus must not fire SLACK evaluations before, and must fire SLACK evaluations after. It scrapes and evaluates once a
minute, or for tickets, which take days, every ten.
"""

SLACK = 2  # evaluations: one until the next, one for what increase() extrapolates
DAY, HOUR = 24 * 60, 60

# Objectives of the class "unit": name, its text, its target.
P99, P90, P999 = ("ttft_p99", "ttft p99 <= 2s", 0.99), ("e2e_p90", "e2e p90 <= 20s", 0.90), ("success", "success 99.9%", 0.999)

# Window pairs: the alert, the long window in minutes, the factor.
FAST, SLOW, TICKET = ("WeirSLOPage", HOUR, 14.4), ("WeirSLOPage", 6 * HOUR, 6), ("WeirSLOTicket", 3 * DAY, 1)

# What is tried: objective, pair, share of bad calls. A share of 0.9 or more is an outage, and pages at once.
BURNS = [
    (P99, FAST, 0.5), (P99, FAST, 0.2), (P99, SLOW, 0.1), (P99, SLOW, 0.07), (P99, TICKET, 0.03), (P99, TICKET, 0.015),
    (P999, FAST, 0.05), (P999, FAST, 0.02), (P999, SLOW, 0.01), (P999, TICKET, 0.002),
    (P90, SLOW, 0.8), (P90, TICKET, 0.2),
]


def stages(*parts):
    """Good and bad counts, a sample a step, of (steps, good a step, bad a step)."""
    texts, sums = ([], []), [0, 0]
    for steps, *rates in parts:
        for i, rate in enumerate(rates):
            texts[i].append("%d+%dx%d" % (sums[i], rate, steps - 1))
            sums[i] += steps * rate
    return [" ".join(t) for t in texts]


def calls(objective, *parts, model="m", others="good"):
    """The series that the gateway has of one objective and model. What is not bad is good, or unknown."""
    good, bad = stages(*parts)
    none = "0+0x%d" % (sum(p[0] for p in parts) - 1)
    series = 'weir_slo_calls_total{class="unit",model="%s",objective="%s",verdict="%s"}'
    return [{"series": series % (model, objective[0], verdict), "values": values}
            for verdict, values in ((others, good), ({"good": "unknown", "unknown": "good"}[others], none), ("bad", bad), ("outside", bad))]


def firing(alert, at, count, step="m"):
    """The check that so many alerts of a name are firing."""
    return {"expr": 'count(ALERTS{alertname="%s",alertstate="firing"})' % alert, "eval_time": "%d%s" % (at, step),
            "exp_samples": [{"labels": "{}", "value": count}] if count else []}


def labels(objective, severity, **more):
    return {"class": "unit", "objective": objective[0], "severity": severity, "service": "weir", **more}


def burn(objective, pair, r, step=1):
    """A test that one pair fires when the workbook says so, for the model and for all models. step is in minutes."""
    alert, long, factor = pair
    allowed = 1 - objective[2]
    needed = min(factor, 0.9 / allowed) * allowed
    wait = needed * long / r
    past = max(long, 6 * HOUR) + 10
    rate = 1000 * step
    before, after = past + wait - SLACK * step, past + wait + SLACK * step
    return {
        "name": "%s %s/%s at %g bad: %.1f min" % (objective[0], alert, long, r, wait),
        "interval": "%dm" % step,
        "input_series": calls(objective, (past // step, rate, 0), (int(wait) // step + 40, round(rate * (1 - r)), round(rate * r))),
        "promql_expr_test": [firing(alert, past - step, 0), firing(alert, int(before // step) * step, 0),
                             firing(alert, int(after // step + 1) * step, 2), firing(alert, int(after // step + 1) * step + 30, 2)],
    }


def quiet(objective, r, hours, others="good"):
    """A test that a share of bad calls below what a page needs never pages, what the others are."""
    past = 6 * HOUR + 10
    return {"name": "%s at %g bad, others %s: no page" % (objective[0], r, others), "interval": "1m",
            "input_series": calls(objective, (past, 1000, 0), (hours * HOUR, round(1000 * (1 - r)), round(1000 * r)), others=others),
            "promql_expr_test": [firing("WeirSLOPage", past + h * HOUR, 0) for h in range(hours)]}


def words():
    """A test of all that a page says, for one of two models and for both, once windows are full."""
    past, at = 6 * HOUR, 6 * HOUR + 90
    look = "weir slo --class unit\nweir diagnose --since 5m --class unit"
    says = ('unit, %s: "ttft p99 <= 2s" uses up its error budget so fast that somebody has to look now: '
            "%s of the calls missed it, and 1%% may")
    return {
        "name": "words", "interval": "1m",
        "input_series": calls(P99, (past, 100, 0), (200, 60, 40), model="ill") + calls(P99, (past + 200, 100, 0), model="well"),
        "alert_rule_test": [{"eval_time": "%dm" % at, "alertname": "WeirSLOPage", "exp_alerts": [
            {"exp_labels": labels(P99, "page", model="ill"),
             "exp_annotations": {"summary": says % ("model ill", "40%"), "look_closer": look}},
            {"exp_labels": labels(P99, "page"),
             "exp_annotations": {"summary": says % ("all models", "20%"), "look_closer": look}}]}],
    }


def end():
    """A page ends when the short window is clean and its alert was held for 5 minutes."""
    past, stop = 6 * HOUR + 10, 6 * HOUR + 10 + 40
    return {"name": "end", "interval": "1m", "input_series": calls(P99, (past, 1000, 0), (40, 500, 500), (60, 1000, 0)),
            "promql_expr_test": [firing("WeirSLOPage", stop, 2), firing("WeirSLOPage", stop + 7, 2), firing("WeirSLOPage", stop + 12, 0)]}


def few():
    """One call in ten minutes, all of them bad, is a ticket and no page."""
    return {"name": "few calls", "interval": "1m",
            "input_series": [{"series": s["series"], "values": " ".join("%d+0x9" % n for n in range(72)) if "bad" in s["series"] else "0+0x719"}
                             for s in calls(P99, (1, 0, 0))],
            "promql_expr_test": [firing("WeirSLOPage", at, 0) for at in range(10, 720, 35)] +
                                [firing("WeirSLOTicket", 30, 0), firing("WeirSLOTicket", 120, 2)]}


def outage():
    """Nearly all calls bad pages within a minute and a scrape, long before the windows of an hour; half of them does not."""
    past = HOUR // 2 * 4  # half an hour, in steps of 15 s
    at = lambda seconds: past * 15 + seconds
    return [
        {"name": "outage", "interval": "15s", "input_series": calls(P90, (past, 15, 0), (40, 0, 15)),
         "promql_expr_test": [firing("WeirSLOPage", at(0), 0, "s"), firing("WeirSLOPage", at(75), 2, "s")]},
        {"name": "half an outage", "interval": "15s", "input_series": calls(P90, (past, 15, 0), (40, 7, 8)),
         "promql_expr_test": [firing("WeirSLOPage", at(s), 0, "s") for s in (0, 75, 300)]},
        {"name": "outage of few calls", "interval": "15s", "input_series": calls(P90, (past, 2, 0), (8, 0, 2)),
         "promql_expr_test": [firing("WeirSLOPage", at(75), 0, "s")]},
    ]


def hang():
    """Calls wait and nothing comes: an alert after 5 minutes; not while first tokens come, nor when nobody waits."""
    def case(name, oldest, good, samples):
        series = [{"series": 'weir_slo_oldest_awaiting_seconds{class="unit"}', "values": oldest}] if oldest else []
        return {"name": "hang: " + name, "interval": "1m", "input_series": series + calls(P99, (10, 50, 0), (30, good, 0)),
                "promql_expr_test": [firing("WeirFirstTokenOverdue", at, n) for at, n in samples]}
    return [case("nothing comes", "0x9 3+60x29", 0, [(9, 0), (15, 0), (22, 1), (35, 1)]),
            case("tokens come", "0x9 3+60x29", 50, [(22, 0), (35, 0)]),
            case("all within the threshold", "1x39", 0, [(22, 0), (35, 0)]),
            case("nobody waits", None, 0, [(22, 0), (35, 0)])]


def down():
    since = 'weir_slo_data_since_timestamp_seconds{instance="%s",job="gateways"}'
    up = 'up{instance="%s",job="gateways"}'
    return [
        {"name": "one of two gateways is down", "interval": "1m",
         "input_series": [{"series": since % "a", "values": "5x40"}, {"series": up % "a", "values": "1x40"},
                          {"series": since % "b", "values": "5x10 _x30"}, {"series": up % "b", "values": "1x10 0x29"},
                          {"series": 'up{instance="c",job="others"}', "values": "0x40"}],
         "promql_expr_test": [firing("WeirDown", 10, 0), firing("WeirDown", 12, 0), firing("WeirDown", 15, 1), firing("WeirDown", 40, 1)],
         "alert_rule_test": [{"eval_time": "20m", "alertname": "WeirDown", "exp_alerts": [{
             "exp_labels": {"instance": "b", "job": "gateways", "severity": "page", "service": "weir"},
             "exp_annotations": {"summary": "Weir at b cannot be reached", "look_closer":
                                 "Without it there are no counts, and none of the other alerts can fire. Look at its process, and at the targets page of Prometheus."}}]}]},
        {"name": "no gateway", "interval": "1m", "input_series": [], "promql_expr_test": [firing("WeirDown", 1, 0), firing("WeirDown", 4, 1)]},
    ]


def everything():
    """The tests that are evaluated every minute."""
    return ([burn(*b) for b in BURNS if b[1] != TICKET] + [quiet(P99, 0.055, 7), quiet(P99, 0.055, 7, "unknown"), quiet(P999, 0.005, 7), quiet(P90, 0.55, 7), words(), end(), few()] +
            hang() + down())


def tickets():
    """The tests that are evaluated every ten minutes."""
    return [burn(*b, step=10) for b in BURNS if b[1] == TICKET]


BUDGETS = ["WeirErrorBudgetWarning", "WeirErrorBudgetFreeze", "WeirErrorBudgetExhausted"]


def states(at, step, counts):
    return [firing(alert, at, n, step) for alert, n in zip(BUDGETS, counts)]


def budgets():
    """A rolling period of 30 days, a sample an hour: (bad of 10,000 calls a day) and how many of each alert fire."""
    tests = [{"name": "budget: %d bad of 10,000" % bad, "interval": "1h",
              "input_series": calls(P99, (31 * 24, 10000 - bad, bad)), "promql_expr_test": states(30 * 24 + 12, "h", want)}
             for bad, want in ((48, (0, 0, 0)), (52, (2, 0, 0)), (78, (2, 0, 0)), (82, (2, 2, 0)), (98, (2, 2, 0)), (102, (2, 2, 2)))]
    # Fewer than 299 calls show nothing about a target of 99 %, even if all are bad.
    for daily, want in ((9, (0, 0, 0)), (11, (2, 2, 2))):
        tests.append({"name": "budget: %d bad calls a day, and no others" % daily, "interval": "1h",
                      "input_series": calls(P99, *[part for _ in range(31) for part in ((1, 0, daily), (23, 0, 0))]),
                      "promql_expr_test": states(30 * 24 + 12, "h", want)})
    return tests


def monthly():
    """A calendar period: the gateways' own figures, by the forecast where there is one, the highest of two."""
    def case(name, figures, n, want):
        series = [{"series": 'weir_slo_budget_consumed_ratio{class="unit",objective="ttft_p99",basis="%s",instance="%s"}' % (basis, instance),
                   "values": "%gx20" % x} for basis, instance, x in figures]
        series += [{"series": 'weir_slo_period_calls{class="unit",objective="ttft_p99",instance="a"}', "values": "%dx20" % n}]
        return {"name": "month: " + name, "interval": "1m", "input_series": series, "promql_expr_test": states(10, "m", want)}
    return [case("forecast", [("so_far", "a", 2), ("forecast", "a", 0.82), ("forecast", "b", 0.3)], 400, (1, 1, 0)),
            case("no forecast yet", [("so_far", "a", 1.2)], 400, (1, 1, 1)),
            case("healthy", [("so_far", "a", 0.6), ("forecast", "a", 0.1)], 400, (0, 0, 0)),
            case("few calls", [("so_far", "a", 9), ("forecast", "a", 9)], 290, (0, 0, 0))]
