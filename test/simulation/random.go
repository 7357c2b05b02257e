package simulation

import "math/rand/v2"

// randomDecider chooses at random, by the weights of the classes.
type randomDecider struct {
	random *rand.Rand
	// left bounds the decisions.
	left int
}

func newRandomDecider(seed uint64, decisions int) *randomDecider {
	return &randomDecider{random: rand.New(rand.NewPCG(seed, seed)), left: decisions}
}

func (d *randomDecider) choose(choices []choice) *choice {
	if d.left == 0 {
		return nil
	}
	d.left--
	return weighted(d.random, choices, weights)
}

// weighted chooses a class by its weight, and one of its choices; nil if no class has a weight.
func weighted(random *rand.Rand, choices []choice, weights map[class]int) *choice {
	by, sum := map[class][]choice{}, 0
	for _, c := range choices {
		if len(by[c.class]) == 0 {
			sum += weights[c.class]
		}
		by[c.class] = append(by[c.class], c)
	}
	if sum == 0 {
		return nil
	}
	at := random.IntN(sum)
	for k := range classes {
		if len(by[k]) == 0 {
			continue
		}
		if at -= weights[k]; at < 0 {
			return &by[k][random.IntN(len(by[k]))]
		}
	}
	panic("unreachable")
}
