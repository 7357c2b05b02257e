package behaviour_test

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Most of the time a case waits for polls, so the cases of several themes are
// shown side by side. Each has a cloud and a namespace of its own.
var _ = Describe("the operator", func() {
	sideBySide("creates, names and deletes VMs", creations, prohibitedNames, takenNames, uncheckedNames, nameDoor, deletions)
	sideBySide("looks after VMs, takes them over and lets go of them", losses, drift, edits, imports, observation, releases, pauses)
	sideBySide("makes a VM exactly once", lostAnswers, uncertainCreates)
	sideBySide("looks after groups of VMs", vmGroups)
	sideBySide("looks after Clouds and their tenants", clouds, tenants, access, orphans, outages, brakes, budgets)
	sideBySide("chooses nodes for GPUInfos", gpuInfos)
})

// theme is something, and what holds of it.
type theme struct {
	of string
	cases
}

// cases are sentences, each with its proof.
type cases map[string]func(SpecContext)

func sideBySide(text string, themes ...theme) {
	all := cases{}
	for _, theme := range themes {
		for holds, proof := range theme.cases {
			all[theme.of+" "+holds] = proof
		}
	}
	It(text, func(ctx SpecContext) { all.show(ctx) })
}

const (
	// glance is how often a test looks whether what it waits for has come; many at
	// a time look less often, for the API server shares their processors.
	glance, seldom = 25 * time.Millisecond, 250 * time.Millisecond
)

// show runs the cases side by side. The report names those that failed.
func (all cases) show(ctx SpecContext) {
	GinkgoHelper()
	SetDefaultEventuallyPollingInterval(min(seldom, glance+time.Duration(len(all))*5*time.Millisecond))
	defer SetDefaultEventuallyPollingInterval(glance)
	var running sync.WaitGroup
	for sentence, proof := range all {
		running.Go(func() {
			defer GinkgoRecover()
			began := time.Now()
			defer func() {
				failure := recover()
				if failure == nil {
					GinkgoWriter.Printf("%s: held after %s\n", sentence, time.Since(began).Round(time.Millisecond))
					return
				}
				AddReportEntry("does not hold: " + sentence)
				panic(failure)
			}()
			proof(ctx)
		})
	}
	running.Wait()
}
