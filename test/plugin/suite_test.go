// Package plugin_test runs commands of the kubectl plugin in its process, against a real API
// server and an operator that serves diagnostics.
package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const operatorNamespace = "private-cloud-operator-system"

var (
	env      *testkit.Env
	operator *testkit.Manager
	// operatorURL is where the operator serves diagnostics.
	operatorURL string
	operatorLog = &testkit.Buffer{}
)

func TestMain(m *testing.M) {
	code := 1
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func start() error {
	ctrl.SetLogger(zap.New(zap.WriteTo(operatorLog), zap.Level(zapcore.InfoLevel)))
	var err error
	if env, err = testkit.Start(testkit.Options{}); err != nil {
		return err
	}
	config, err := env.OperatorConfig(context.Background(), operatorNamespace)
	if err != nil {
		return err
	}
	address, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	operatorURL = "http://" + address.String()
	operator, err = testkit.StartManager(config, setup.Options{Namespace: operatorNamespace, Version: "v0.0.0-test", Diagnostics: address.String()})
	return err
}

func stop() error {
	var failures []error
	if operator != nil {
		failures = append(failures, operator.Stop())
	}
	if env != nil {
		failures = append(failures, env.Stop())
	}
	return errors.Join(failures...)
}

// fixture is a cloud with a Cloud object, and a namespace, of one test.
type fixture struct {
	*testkit.T
	name, namespace string
	cloud           *testkit.CloudServer
}

// newFixture makes a Cloud with a name of its own, and waits until it is Ready. prepare
// changes the cloud before the operator lists it.
func newFixture(t *testing.T, name string, prepare func(*testkit.CloudServer), change ...func(*pcapi.Cloud)) *fixture {
	t.Helper()
	return newFixtureOn(t, mockcloud.Options{}, name, prepare, change...)
}

// newFixtureOn is newFixture with a cloud of these options.
func newFixtureOn(t *testing.T, options mockcloud.Options, name string, prepare func(*testkit.CloudServer), change ...func(*pcapi.Cloud)) *fixture {
	t.Helper()
	f := &fixture{T: testkit.NewT(t, 90*time.Second, 100*time.Millisecond), name: name}
	var err error
	f.cloud, err = testkit.ServeCloud(options)
	f.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = f.cloud.Close() })
	if prepare != nil {
		prepare(f.cloud)
	}
	namespace := testkit.Namespace(name+"-", map[string]string{pcapi.DefaultCloudLabel: name})
	f.Expect(env.Client.Create(t.Context(), namespace)).To(Succeed())
	f.namespace = namespace.Name
	f.Expect(env.Client.Create(t.Context(), testkit.Cloud(name, f.cloud.URL, change...))).To(Succeed())
	f.Eventually(func(ctx context.Context) (*pcapi.Cloud, error) {
		var c pcapi.Cloud
		return &c, env.Client.Get(ctx, client.ObjectKey{Name: name}, &c)
	}).Should(testkit.BeReady())
	return f
}

// strangers adds servers of somebody else to a cloud.
func strangers(t *testing.T, cloud *testkit.CloudServer, servers ...mockcloud.Server) {
	t.Helper()
	for _, server := range servers {
		if _, err := cloud.PutServer(server); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command as an administrator with the operator's URL.
func (f *fixture) run(arguments ...string) plugintest.Result {
	f.Helper()
	return plugintest.Setup{Kubeconfig: env.Kubeconfig()}.Run(f.Context(), append(arguments, "--operator-url", operatorURL)...)
}
