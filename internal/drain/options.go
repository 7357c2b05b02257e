package drain

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// Policy is what happens to the servers of the VMs that a drain deletes.
type Policy string

const (
	// PolicyDelete deletes servers as the deletionPolicy of each VM says.
	PolicyDelete Policy = "delete"
	// PolicyOrphan sets deletionPolicy Orphan on all VMs, so that their servers stay.
	PolicyOrphan Policy = "orphan"
)

// interval is the time between two rounds.
const interval = 2 * time.Second

// Options are what a drain does.
type Options struct {
	// Policy is required.
	Policy Policy
	// Yes requests the deletions. Without it, the plan is printed and nothing is changed.
	Yes bool
	// Namespace restricts the drain to the objects of one namespace. Clouds are kept then.
	Namespace string
	// Cloud restricts the drain to one Cloud and the objects that use it.
	Cloud string
	// Timeout is how long the drain waits for the operator; positive.
	Timeout time.Duration
	// Interval is the time between two rounds; 2 s if zero.
	Interval time.Duration
}

// Bind registers the flags of the options.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar((*string)(&o.Policy), "policy", "", "required: delete, or orphan to keep all servers in their clouds")
	flags.BoolVar(&o.Yes, "yes", false, "request the deletions; without it, print what would be done and change nothing")
	flags.StringVar(&o.Namespace, "namespace", "", "only the objects of this namespace; Clouds are kept")
	flags.StringVar(&o.Cloud, "cloud", "", "only this Cloud, and the objects that use it")
	flags.DurationVar(&o.Timeout, "timeout", 30*time.Minute, "how long to wait until the operator has completed the deletions")
}

// Validate returns an error that says what to correct.
func (o *Options) Validate() error {
	var problems []error
	if o.Policy != PolicyDelete && o.Policy != PolicyOrphan {
		problems = append(problems, fmt.Errorf("--policy is %q: set --policy=delete to delete servers as each VM says, or --policy=orphan to keep them all", o.Policy))
	}
	if o.Timeout <= 0 {
		problems = append(problems, fmt.Errorf("--timeout is %s: set a positive duration, such as 30m", o.Timeout))
	}
	return errors.Join(problems...)
}
