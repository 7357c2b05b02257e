package vsphere_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// cluster is an API server with the operator.
type cluster struct {
	env      *testkit.Env
	user     *rest.Config
	operator *testkit.Manager
}

// home is the cluster of tests that need no other. It is started once, when the first of
// them needs it, and stopped after the last.
var (
	home = sync.OnceValues(func() (*cluster, error) {
		c, err := startCluster()
		stopHome = c.stop
		return c, err
	})
	stopHome = func() error { return nil }
)

func TestMain(m *testing.M) {
	// The tests mostly wait.
	if err := testkit.RunInParallel(64); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stopHome(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func startCluster() (*cluster, error) {
	c, err := startServer()
	if err == nil {
		c.operator, err = c.start()
	}
	return c, err
}

// startServer starts a cluster without an operator.
func startServer() (c *cluster, err error) {
	ctrl.SetLogger(logr.Discard())
	c = &cluster{}
	if c.env, err = testkit.Start(testkit.Options{}); err != nil {
		return nil, err
	}
	c.user, err = c.env.OperatorConfig(context.Background(), specs.OperatorNamespace)
	return c, err
}

// start starts another manager of the cluster.
func (c *cluster) start(change ...func(*ctrl.Options)) (*testkit.Manager, error) {
	return testkit.StartManager(c.user, setup.Options{Namespace: specs.OperatorNamespace}, change...)
}

func (c *cluster) stop() error {
	var manager, server error
	if c.operator != nil {
		manager = c.operator.Stop()
	}
	if c.env != nil {
		server = c.env.Stop()
	}
	return errors.Join(manager, server)
}

// newCluster starts a cluster, with or without an operator, that ends with the test.
func newCluster(t *testkit.T, start func() (*cluster, error)) *cluster {
	t.Helper()
	c, err := start()
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(c.stop()).To(Succeed()) })
	return c
}
