package faults

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// openWorld is a world for one spec, which tells its story if the spec fails.
func openWorld(ctx context.Context, s setting) *world {
	GinkgoHelper()
	w, err := shared.newWorld(ctx, s)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Println(w.story())
		}
		w.close()
	})
	return w
}

// inWorlds does the same in many worlds at a time, for they mostly wait, and
// wants it to succeed in all.
func inWorlds(ctx context.Context, worlds map[string]setting, do func(context.Context, *world) error) {
	GinkgoHelper()
	verdicts := make(chan error)
	for name, s := range worlds {
		go func() { verdicts <- inWorld(ctx, name, s, do) }()
	}
	var failures []error
	for range worlds {
		if err := <-verdicts; err != nil {
			failures = append(failures, err)
		}
	}
	Expect(failures).To(BeEmpty())
}

func inWorld(ctx context.Context, name string, s setting, do func(context.Context, *world) error) error {
	began := time.Now()
	w, err := shared.newWorld(ctx, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer w.close()
	if _, err = w.start(); err == nil {
		err = do(ctx, w)
	}
	if err != nil {
		GinkgoWriter.Println(w.story())
		return fmt.Errorf("%s: %w", name, err)
	}
	GinkgoWriter.Printf("%s: well after %s\n", name, time.Since(began).Round(time.Millisecond))
	return nil
}

// on makes a world for each profile.
func on(profiles ...profile) map[string]setting {
	worlds := map[string]setting{}
	for _, p := range profiles {
		worlds[p.name] = setting{profile: p}
	}
	return worlds
}
