// Package behaviour_test shows on a real API server how the operator behaves.
// The operator and its clouds run in the process of the tests; every case has a
// cloud and a namespace of its own, so that each can be run alone with -run and
// all can run in parallel.
package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// operatorNamespace is where the Secrets of Clouds are.
	operatorNamespace = "private-cloud-system"
	// callTimeout is how long the operator waits for a cloud's answer.
	callTimeout = 3 * time.Second
	// inParallel is how many cases run at a time: most of the time they wait for polls.
	inParallel = 48
)

var (
	env      *testkit.Env
	operator *testkit.Manager
	// operatorConfig is the operator's own user.
	operatorConfig *rest.Config
	// defaultCloud is the endpoint of the Cloud "default", which the operator makes itself.
	defaultCloud *testkit.CloudServer
	// operatorLog is all that the operator logged, at debug level.
	operatorLog = &testkit.Buffer{}
)

func TestMain(m *testing.M) {
	code := 1
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		if err := checkRights(code == 0 && wholeSuite()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func start() error {
	if err := testkit.RunInParallel(inParallel); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(operatorLog), zap.Level(zapcore.DebugLevel)))
	ctx := context.Background()
	var err error
	options := testkit.Options{
		Audit: testkit.OperatorUser(operatorNamespace),
		// As on OpenShift: the owner of an object may block its deletion only if the
		// writer may update the finalizers of the owner.
		APIServerFlags: map[string][]string{"enable-admission-plugins": {"OwnerReferencesPermissionEnforcement"}},
	}
	if env, err = testkit.Start(options); err != nil {
		return err
	}
	if operatorConfig, err = env.OperatorConfig(ctx, operatorNamespace); err != nil {
		return err
	}
	if defaultCloud, err = testkit.ServeCloud(mockcloud.Options{}); err != nil {
		return err
	}
	probeNetworks, err := probe.ParseNetworks("10.0.0.0/8")
	if err != nil {
		return err
	}
	if operatorWebhook, err = env.NewWebhook(); err != nil {
		return err
	}
	operator, err = testkit.StartManager(operatorConfig, setup.Options{
		Namespace: operatorNamespace, DefaultEndpoint: defaultCloud.URL, CallTimeout: callTimeout, NameCheck: true, CloudWebhook: true,
		Alone: func() bool { return true }, ProbeNetworks: probeNetworks, ProbeDial: guestPorts.dial,
	}, operatorWebhook.Serve)
	if err != nil {
		return err
	}
	return registerWebhook(ctx, operatorWebhook, "operator", webhookLabels)
}

// stop stops what start started, last first, and looks for secrets in what is
// left at the end: the events and the log.
func stop() error {
	var failures []error
	if operator != nil {
		failures = append(failures, secretsInEvents(), secretsInLog(), operator.Stop())
	}
	if operatorWebhook != nil {
		failures = append(failures, operatorWebhook.Close())
	}
	if defaultCloud != nil {
		failures = append(failures, defaultCloud.Close())
	}
	if env != nil {
		failures = append(failures, env.Stop())
	}
	return errors.Join(failures...)
}

func secretsInEvents() error {
	var events eventsv1.EventList
	if err := env.Client.List(context.Background(), &events); err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	return secretsIn("events", events)
}

func secretsInLog() error {
	for line := range strings.Lines(operatorLog.String()) {
		if strings.Contains(line, secretPart) {
			return fmt.Errorf("a secret is in the log: %s", line)
		}
	}
	return nil
}
