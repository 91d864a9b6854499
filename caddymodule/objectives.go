package caddymodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/slofile"
	"github.com/weirgate/weir/slo"
)

const (
	// tickEvery is how often calls that are waited for are looked at. What is decided
	// meanwhile counts for the instant at which it was.
	tickEvery = time.Second
	// observeEvery is how often alerts are decided, in ticks.
	observeEvery = 5
)

// objectives are what promises are kept with. They outlive configurations.
type objectives struct {
	tracker *slo.Tracker
	alerts  *alert.Manager
	// rooms.mu guards what follows.
	// file is the state on disk, nil while none is used, and dir where it lies.
	file *slofile.File
	dir  string
	// keeper keeps alerts beside the counts, nil while nobody does.
	keeper *alert.Keeper
	// inMemory is whether there are counts that no file has.
	inMemory bool
	// stopTelling ends the telling of alerts; nil before the first configuration.
	stopTelling func()
}

func newObjectives() *objectives {
	return &objectives{tracker: slo.New(), alerts: alert.New(alert.Options{})}
}

// stateDir is where counts are kept; "" is nowhere.
func (a *App) stateDir() string {
	switch s := a.SLO; {
	case s != nil && (s.Off || s.State == "off"):
		return ""
	case s != nil && s.State != "":
		return caddy.NewReplacer().ReplaceAll(s.State, "")
	}
	return filepath.Join(caddy.AppDataDir(), "weir", "slo")
}

// promise makes what a configuration promises hold: its objectives, and whom alerts
// go to. rooms.mu is held.
func (o *objectives) promise(a *App) error {
	options, err := a.alertOptions()
	if err != nil {
		return err
	}
	log := a.log.Named("slo")
	began := o.stopTelling != nil
	if !began {
		o.stopTelling = background(o.alerts.Run)
	}
	switch {
	case !a.promises():
		// Nothing is counted any more. What has been stays on disk, for whoever switches
		// objectives on again; alerts, which end one after the other from now on, as over.
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		if err := o.closeWith(ctx, (*alert.Keeper).CloseForGood); err != nil {
			log.Warn("the latest counts of objectives, or alerts, could not be kept", zap.Error(err))
		}
		cancel()
		o.file, o.keeper, o.inMemory = nil, nil, false
	case !began:
		// Before objectives are configured, so that what an earlier process kept and
		// nothing is promised of any more is told of.
		if err := o.open(a.stateDir(), log); err != nil {
			return err
		}
	}
	if err := o.tracker.Configure(a.promised, time.Now()); err != nil {
		return fmt.Errorf("keep objectives: %w", err)
	}
	if dropped := o.tracker.Dropped(); len(dropped) > 0 && a.promises() {
		log.Warn("objectives have changed, and the counts of those before are dropped", zap.Strings("dropped", dropped))
	}
	o.alerts.Configure(options)
	if !a.promises() {
		return nil
	}
	if err := o.open(a.stateDir(), log); err != nil {
		return err
	}
	// Not before receivers are configured: what they know is taken up with alerts.
	if o.file != nil && o.keeper == nil {
		o.keeper = o.alerts.Keep(shelf{o.file.Beside(alertsFile)}, keptOn(log.With(zap.String("state", o.dir))))
	}
	return nil
}

// alertsFile is where alerts are kept, in the directory of the counts.
const alertsFile = "alerts.json"

// shelf is a file beside the counts as alerts are kept in it.
type shelf struct{ *slofile.Beside }

func (s shelf) Load() ([]byte, error) {
	data, err := s.Beside.Load()
	if errors.Is(err, slofile.ErrNotHeld) {
		err = fmt.Errorf("%w: %w", alert.ErrNotYet, err)
	}
	return data, err
}

// keptOn logs what people should know of what is kept.
func keptOn(log *zap.Logger) func(text string, err error) {
	return func(text string, err error) {
		if err != nil {
			log.Warn(text, zap.Error(err))
			return
		}
		log.Info(text)
	}
}

// closeWait is how long the disk may take for the last counts, and alerts, when
// objectives are switched off and when the process ends.
const closeWait = 2 * time.Second

// open takes up what is kept in a directory, and goes on keeping it there. rooms.mu is
// held.
func (o *objectives) open(dir string, log *zap.Logger) error {
	switch {
	case o.file != nil && dir == o.dir:
		return nil
	case o.file != nil || o.inMemory && dir != "":
		log.Warn("where the counts of objectives are kept changes when the process starts anew", zap.String("state", cmp.Or(dir, "off")))
		return nil
	case dir == "":
		o.inMemory = true
		return nil
	}
	file, err := slofile.Open(dir, o.tracker, slofile.Options{
		// A process that begins while the one before still ends gets its counts later.
		Fresh:  func() slofile.State { return slo.New() },
		Report: keptOn(log.With(zap.String("state", dir))),
	})
	if err != nil {
		return fmt.Errorf("keep the counts of objectives: %w", err)
	}
	go file.Run(context.Background()) // Close ends it, and waits for it
	o.file, o.dir = file, dir
	return nil
}

// end writes what is to be kept and ends what runs. rooms.mu is held.
func (o *objectives) end(ctx context.Context) error {
	if o.stopTelling != nil {
		o.stopTelling()
	}
	// A receiver that is dead may have used up all of the time, and just then there is
	// something to keep.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return o.close(ctx)
}

// close writes alerts and counts a last time. rooms.mu is held.
func (o *objectives) close(ctx context.Context) error {
	return o.closeWith(ctx, (*alert.Keeper).Close)
}

// closeWith is close with what becomes of alerts. rooms.mu is held.
func (o *objectives) closeWith(ctx context.Context, alerts func(*alert.Keeper, context.Context) error) (all error) {
	if o.keeper != nil {
		// First, for the directory belongs to the file of counts, which gives it up; and in
		// half of the time, for a disk that hangs may let the counts pass.
		half, cancel := halfOf(ctx)
		all = alerts(o.keeper, half)
		cancel()
	}
	if o.file != nil {
		all = errors.Join(all, o.file.Close(ctx))
	}
	return all
}

// halfOf leaves half of the time that a context has left.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	at, bounded := ctx.Deadline()
	if !bounded {
		at = time.Now().Add(2 * closeWait)
	}
	return context.WithTimeout(ctx, time.Until(at)/2)
}

// alertOptions are the receivers and the words of alerts.
func (a *App) alertOptions() (alert.Options, error) {
	o := alert.Options{Warn: a.promised.Warn, Freeze: a.promised.Freeze, Blame: a.blame}
	log := a.log.Named("alert")
	o.Report = func(receiver string, err error) {
		if err != nil {
			log.Error("alerts do not arrive; they are tried again", zap.String("receiver", receiver), zap.Error(err))
			return
		}
		log.Info("alerts arrive again", zap.String("receiver", receiver))
	}
	o.Receivers = append(o.Receivers, alert.Func("log and caddy events", a.announceAlert))
	for _, c := range a.Alerts {
		address, header := c.target()
		receiver := alert.NewAlertmanager
		if c.Kind == webhook {
			receiver = alert.NewWebhook
		}
		r, err := receiver(address, header, nil)
		if err != nil {
			return o, fmt.Errorf("alert %s: %w", c.Kind, err)
		}
		o.Receivers = append(o.Receivers, r)
		for name, v := range c.Labels {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			if was, given := o.Labels[name]; given && was != v {
				return o, fmt.Errorf("alert label %s is %q and %q, and all alerts have all labels; leave one of them", name, was, v)
			}
			o.Labels[name] = v
		}
	}
	return o, nil
}

// alertEvent is the event of Caddy's events app that an alert is; its data has what
// the alert says.
const alertEvent = "weir_alert"

// announceAlert writes an alert to the log, and emits it as an event.
func (a *App) announceAlert(_ context.Context, told alert.Alert) error {
	fields := []zap.Field{zap.String("status", string(told.Status)), zap.Any("labels", told.Labels), zap.Any("annotations", told.Annotations)}
	log := a.log.Named("alert")
	switch {
	case told.Status == alert.Resolved:
		log.Info("alert is over", fields...)
	case told.Severity == alert.Page || told.Severity == alert.Exhausted:
		log.Error("alert", fields...)
	default:
		log.Warn("alert", fields...)
	}
	if a.events != nil {
		a.events.Emit(a.ctx, alertEvent, map[string]any{
			"status": string(told.Status), "severity": string(told.Severity), "class": told.Class, "objective": told.Objective, "model": told.Model,
			"starts_at": told.StartsAt, "ends_at": told.EndsAt, "labels": told.Labels, "annotations": told.Annotations, "fingerprint": told.Fingerprint,
		})
	}
	return nil
}

// judge looks at calls that are waited for, again and again, and decides on alerts.
func (a *App) judge(ctx context.Context) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		a.look(time.Now(), n%observeEvery == 0)
	}
}

// look judges what has been decided by now, and decides on alerts while this configuration
// is the one that holds. Those of objectives that are no more end.
func (a *App) look(now time.Time, decide bool) {
	o := a.shared.rooms.objectives
	defer func() {
		if fault := recover(); fault != nil { // what only looks on must not end the process
			a.log.Error("a fault while objectives were looked at; calls are not touched", zap.Any("fault", fault), zap.Stack("stack"))
		}
	}()
	o.tracker.Tick(now)
	a.note(now)
	if decide && a.shared.rooms.theRunning() == a {
		o.alerts.Observe(now, o.tracker.Status(now))
	}
}

// provisionObjectives reads what is promised, and tells what is odd about it.
func (a *App) provisionObjectives(ctx caddy.Context) error {
	var warnings []slo.Warning
	var err error
	if a.promised, warnings, err = a.objectives(); err != nil {
		return err
	}
	for _, w := range warnings {
		if a.isPreset(w.Class) {
			continue // known, and stated in the README
		}
		a.log.Named("slo").Warn(w.Reason, zap.String("class", w.Class), zap.String("objective", w.Objective))
	}
	if app, err := ctx.App("events"); err == nil {
		a.events, _ = app.(*caddyevents.App)
	}
	a.ctx = ctx
	return nil
}

// promises tells whether there are objectives.
func (a *App) promises() bool { return len(a.promised.Classes) > 0 }

// isPreset tells whether a class is as it comes.
func (a *App) isPreset(class string) bool {
	return slices.Contains(presets, class) && !slices.ContainsFunc(a.Classes, func(c *ClassConfig) bool { return c.Name == class })
}
