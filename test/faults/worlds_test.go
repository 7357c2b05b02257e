package faults

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
)

// openWorld makes a world for one test. Its report is logged if the test fails.
func openWorld(t *testkit.T, s setting) *world {
	t.Helper()
	return openWorldIn(t, sharedEnvironment(t.T), s)
}

func openWorldIn(t *testkit.T, env *environment, s setting) *world {
	t.Helper()
	w, err := env.newWorld(t.Context(), s)
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.report())
		}
		w.close()
	})
	return w
}

// worldWithVM is a world with a manager and one VM that is ready.
func worldWithVM(t *testkit.T) *world {
	t.Helper()
	w := openWorld(t, setting{profile: extended})
	_, err := w.start()
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create(vm))).To(Succeed())
	t.Expect(w.violations()).To(BeEmpty())
	return w
}

// inWorlds runs a check in one world for each setting, each with a manager of its
// own. The subtests run in parallel, since they mostly wait.
func inWorlds(t *testing.T, settings map[string]setting, check func(context.Context, *world) error) {
	t.Helper()
	for name, s := range settings {
		t.Run(name, func(tt *testing.T) {
			tt.Parallel()
			runSlots <- struct{}{}
			defer func() { <-runSlots }()
			t := newT(tt)
			began := time.Now()
			w := openWorld(t, s)
			_, err := w.start()
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(check(t.Context(), w)).To(Succeed())
			t.Logf("%s: ended after %s", name, time.Since(began).Round(time.Millisecond))
		})
	}
}

// on returns one setting for each profile.
func on(profiles ...profile) map[string]setting {
	settings := map[string]setting{}
	for _, p := range profiles {
		settings[p.name] = setting{profile: p}
	}
	return settings
}
