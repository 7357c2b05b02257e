package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

// shared starts the API server and builds the manager, once, when the first test needs them.
var shared = sync.OnceValues(newEnvironment)

// stopShared stops what shared started.
var stopShared = func() error { return nil }

func TestMain(m *testing.M) {
	// All cases of all parallel tests start at once; runSlots limits the runs among them.
	if err := testkit.RunInParallel(256); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newEnvironment() (*environment, error) {
	folder, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the runs: %w", err)
	}
	stopShared = func() error { return os.RemoveAll(folder) }
	env := &environment{folder: folder}
	if env.binary, err = testkit.BuildManager(folder); err != nil {
		return nil, err
	}
	if env.apiServer, err = testkit.Start(testkit.Options{}); err != nil {
		return nil, err
	}
	stopShared = func() error { return errors.Join(env.apiServer.Stop(), os.RemoveAll(folder)) }
	if _, err := env.apiServer.ClaimAtCreation(context.Background(), claimLabels); err != nil {
		return nil, err
	}
	err = env.connect()
	return env, err
}

func (env *environment) connect() error {
	scheme, err := testkit.Scheme()
	if err != nil {
		return err
	}
	env.client, err = client.NewWithWatch(env.apiServer.Config, client.Options{Scheme: scheme})
	return err
}

// newT returns a T that waits as long as a run may take to converge.
func newT(t *testing.T) *testkit.T {
	t.Helper()
	return testkit.NewT(t, converges, 20*time.Millisecond)
}

func sharedEnvironment(t *testing.T) *environment {
	t.Helper()
	env, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// ownEnvironment is the shared environment with another API server, for one run whose manager sees all namespaces.
func ownEnvironment(t *testing.T) *environment {
	t.Helper()
	env := &environment{binary: sharedEnvironment(t).binary, folder: t.TempDir(), alone: true}
	var err error
	if env.apiServer, err = testkit.Start(testkit.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.apiServer.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := env.connect(); err != nil {
		t.Fatal(err)
	}
	return env
}

// seed returns the seed of what is random, and logs it so that a failure can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FAULTS_SEED is no number: %v", err)
		}
	}
	t.Logf("FAULTS_SEED=%d", n)
	return n
}
