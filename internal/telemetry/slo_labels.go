package telemetry

import (
	"sync"

	"github.com/weirgate/weir/slo"
)

// objectiveKey is the labels of one objective's figures.
type objectiveKey struct{ class, model, objective string }

// objectiveLabels bounds the labels of objectives. What is once a label stays it,
// and what once has become Other stays Other, so that no counter ever falls.
type objectiveLabels struct {
	classes, models, names *learnt

	mu   *sync.Mutex // guards seen
	seen map[objectiveKey]struct{}
}

func newObjectiveLabels() objectiveLabels {
	return objectiveLabels{
		classes: newLearnt(slo.MaxClasses), models: newLearnt(ModelCap), names: newLearnt(ObjectiveCap),
		mu: new(sync.Mutex), seen: make(map[objectiveKey]struct{}),
	}
}

// counted returns the labels of a count. Past a cap it is counted under Other.
func (l *objectiveLabels) counted(class, model, objective string) objectiveKey {
	key := objectiveKey{l.classes.label(class, true), l.models.label(model, true), l.names.label(objective, true)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[key]; !known {
		if len(l.seen) < ObjectiveSeriesCap {
			l.seen[key] = struct{}{}
		} else {
			key.model = Other
		}
	}
	return key
}

// shown returns the labels of a figure that cannot be added to others; false when
// a cap has taken one of them. The model may be empty, which stands for all.
func (l *objectiveLabels) shown(class, model, objective string) (objectiveKey, bool) {
	key := objectiveKey{l.classes.label(class, true), model, l.names.label(objective, true)}
	if model != "" {
		key = l.counted(class, model, objective)
	}
	return key, key.class != Other && key.objective != Other && (key.model == model)
}
