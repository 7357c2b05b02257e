package vm

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/external"
)

// unforeseen are the steps whose effect depends on what the cloud answers: a forecast ends there.
var unforeseen = []string{external.StepLook, stepAwaitRevert}

// TestForecastOfEverySituation: each step that is planned is foreseen or ends the forecast on
// purpose, the inputs stay as they are, and the forecast ends before it is cut off.
func TestForecastOfEverySituation(t *testing.T) {
	broken := 0
	exhaust(func(p pick) {
		vm, obs := situation(p)
		vmBefore, before := vm.DeepCopy(), cloneObservation(obs)
		recording := &recorder{kind: pureKind}
		changes, outcome := external.Forecast(pure, recording, vm, obs)
		var err error
		if !reflect.DeepEqual(vmBefore, vm) || !sameObservation(before, obs) {
			err = errors.Join(err, errors.New("Forecast changed its input"))
		}
		if len(recording.unknown) > 0 {
			err = errors.Join(err, fmt.Errorf("steps that are not foreseen: %v", recording.unknown))
		}
		if recording.steps > 20 {
			err = errors.Join(err, fmt.Errorf("the forecast does not end: %v", changes))
		}
		if err != nil && broken < 10 {
			broken++
			t.Errorf("%v\nforecast %v, %s\n%s", err, changes, describe(outcome), describeSituation(vm, obs))
		}
	})
}

// recorder counts the steps that the kind was asked about, and notes those that it does not know.
type recorder struct {
	*kind

	steps   int
	unknown []string
}

func (r *recorder) Foresee(step string, vm *pcapi.VM, obs *observation) ([]pcapi.PlannedChange, bool) {
	changes, known := r.kind.Foresee(step, vm, obs)
	r.steps++
	if !known && !slices.Contains(unforeseen, step) {
		r.unknown = append(r.unknown, step)
	}
	return changes, known
}
