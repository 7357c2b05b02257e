package faults

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// crowd is how many runs go on at a time: they mostly wait.
const crowd = 36

var _ = Describe("A manager killed at any one effect", Ordered, ContinueOnFailure, func() {
	all := chosen()

	BeforeAll(func() {
		ctx, cancel := context.WithCancel(context.Background())
		DeferCleanup(cancel)
		places := make(chan struct{}, crowd)
		for _, c := range all {
			go c.explore(ctx, shared, places, GinkgoWriter.Printf)
		}
	})

	for _, c := range all {
		It(c.String(), func(ctx SpecContext) {
			Eventually(ctx, c.done).WithTimeout(10*time.Minute).Should(BeClosed(), "all runs end")
			for _, out := range c.failures {
				GinkgoWriter.Println(out.err)
				GinkgoWriter.Println(out.story)
			}
			AddReportEntry("effects", len(c.effects), ReportEntryVisibilityFailureOrVerbose)
			AddReportEntry("runs", c.runs, ReportEntryVisibilityFailureOrVerbose)
			var failures []error
			for _, out := range c.failures {
				failures = append(failures, out.err)
			}
			Expect(failures).To(BeEmpty())
		})
	}
})
