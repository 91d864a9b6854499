package gpu

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
)

// Reasons is a set of reasons why the clocks of a GPU are not at their highest:
// NVML's bit mask, which DCGM shares
// (https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html).
type Reasons uint64

// The reasons. Idle and AppClocks are benign: nothing holds the clocks down
// against the owner's will.
const (
	Idle         Reasons = 0x1   // nothing runs
	AppClocks    Reasons = 0x2   // as the owner set them
	PowerCap     Reasons = 0x4   // the power limit is reached
	HWSlowdown   Reasons = 0x8   // the hardware halved the clocks, or worse: heat, power brake or supply
	SyncBoost    Reasons = 0x10  // another GPU of the group is slower
	SWThermal    Reasons = 0x20  // the driver keeps the temperature down
	HWThermal    Reasons = 0x40  // the hardware keeps the temperature down
	PowerBrake   Reasons = 0x80  // the machine told the GPU to use less power
	DisplayClock Reasons = 0x100 // a display needs it so
	BoardLimit   Reasons = 0x200 // the board's limit of current or voltage
	Reliability  Reasons = 0x400 // voltage is kept down for the chip's sake
)

const (
	benign = Idle | AppClocks
	// spelled are the reasons that have a name.
	spelled = benign | PowerCap | HWSlowdown | SyncBoost | SWThermal | HWThermal | PowerBrake | DisplayClock | BoardLimit | Reliability
)

// names are those of the bits, lowest first.
var names = [...]string{"idle", "app_clocks", "power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "power_brake",
	"display_clock", "board_limit", "reliability"}

// Throttling leaves out the benign reasons.
func (r Reasons) Throttling() Reasons { return r &^ benign }

// Names returns the names of the reasons, the benign ones left out; "other"
// stands for all that this package does not know. No reason is nil.
func (r Reasons) Names() []string { return r.Throttling().all() }

// all names the benign reasons too.
func (r Reasons) all() []string {
	if r == 0 {
		return nil
	}
	list := make([]string, 0, bits.OnesCount64(uint64(r&spelled))+1)
	for rest := uint64(r & spelled); rest != 0; rest &= rest - 1 {
		list = append(list, names[bits.TrailingZeros64(rest)])
	}
	if r&^spelled != 0 {
		list = append(list, "other")
	}
	return list
}

// MarshalJSON writes the names of all reasons, benign ones too.
func (r Reasons) MarshalJSON() ([]byte, error) {
	list := r.all()
	if list == nil {
		list = []string{}
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes; names it does not know become one
// reason without a name.
func (r *Reasons) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("read the names of clock reasons: %w", err)
	}
	*r = 0
	for _, name := range list {
		if i := slices.Index(names[:], name); i >= 0 {
			*r |= 1 << i
		} else {
			*r |= 1 << len(names)
		}
	}
	return nil
}
