package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// sparseDecider lets the operator work as priorities say, which are random and change a few times
// (priority-based scheduling: PCT), and disturbs it seldom: mostly while a change is on its way. Each run
// has weights of its own, some of them 0 (swarm testing). It reaches states that many steps without a
// fault lead to, and bugs that need several faults of a kind. In most runs, some of the objects are never
// created.
type sparseDecider struct {
	random *rand.Rand
	// left bounds the decisions.
	left    int
	weights map[class]int
	// without are the beginnings of the names of choices that are never made.
	without []string
	// disturbed is how many decisions of a thousand are disturbances while a change is on its way.
	disturbed int
	// priorities are those of the actors, and lowest is the lowest of them.
	priorities map[string]float64
	lowest     float64
}

const (
	// lowered is how many decisions of a thousand lower the priority of the actor that would be next, and
	// seldom how many are disturbances while no change is on its way.
	lowered, seldom = 10, 20
)

func newSparseDecider(seed uint64, decisions int) *sparseDecider {
	d := &sparseDecider{random: rand.New(rand.NewPCG(seed, 1)), left: decisions, weights: map[class]int{}, priorities: map[string]float64{}}
	for k := range classes {
		d.weights[k] = weights[k]
		if k > finish && k != wait && k != act && k != startNext && k != endOutage {
			d.weights[k] *= []int{0, 1, 1, 5}[d.random.IntN(4)]
		}
	}
	for _, object := range []string{"VM a", "VM b", "VmGroup g", "Network n"} {
		if d.random.IntN(2) == 0 && len(d.without) < 3 {
			d.without = append(d.without, "user: create "+object)
		}
	}
	d.disturbed = []int{30, 100, 300}[d.random.IntN(3)]
	return d
}

func (d *sparseDecider) choose(choices []choice) *choice {
	if d.left == 0 {
		return nil
	}
	d.left--
	choices = slices.DeleteFunc(choices, func(c choice) bool {
		return slices.ContainsFunc(d.without, func(name string) bool { return strings.HasPrefix(c.name, name) })
	})
	next := d.next(choices)
	if next != nil && d.random.IntN(1000) < lowered {
		d.lowest--
		d.priorities[next.actor()] = d.lowest
		next = d.next(choices)
	}
	changing := slices.ContainsFunc(choices, func(c choice) bool { return c.class > inFlight })
	var other *choice
	switch at := d.random.IntN(1000); {
	case changing && at < d.disturbed:
		other = d.among(choices, func(c class) bool { return c > inFlight })
	case at < seldom:
		other = d.among(choices, func(c class) bool { return c > finish })
	}
	if other == nil {
		other = next
	}
	if other == nil {
		other = d.among(choices, func(c class) bool { return c > finish && c < killProcess || c == resumeProcess || c == startNext })
	}
	return other
}

// next returns the choice of the actor with the highest priority; nil if none is left but time,
// faults and people.
func (d *sparseDecider) next(choices []choice) *choice {
	var first *choice
	for i, c := range choices {
		if c.class > finish {
			continue
		}
		if _, known := d.priorities[c.actor()]; !known {
			d.priorities[c.actor()] = d.random.Float64()
		}
		if first == nil || d.priorities[c.actor()] > d.priorities[first.actor()] {
			first = &choices[i]
		}
	}
	return first
}

// among chooses at random among choices of some classes.
func (d *sparseDecider) among(choices []choice, of func(class) bool) *choice {
	var some []choice
	for _, c := range choices {
		if of(c.class) {
			some = append(some, c)
		}
	}
	return weighted(d.random, some, d.weights)
}

// actor is what a choice lets go on: the steps of a call are of one actor.
func (c choice) actor() string {
	_, actor, _ := strings.Cut(c.name, " ")
	actor, _, _ = strings.Cut(actor, " #")
	return actor
}
