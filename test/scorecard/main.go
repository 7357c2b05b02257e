// Command scorecard is the suite of the project for operator-sdk scorecard: it runs
// one test in a pod in the namespace of the operator and prints the result.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	scorecard "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// version is set with -ldflags "-X main.version=...".
var version = "dev"

// testTime is the timeout of the test. That of scorecard must be longer:
// --wait-time=120s.
const testTime = 100 * time.Second

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		fmt.Println(version)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	result := run(ctx, os.Args[1:])
	cancel()
	output, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
	fmt.Println(string(output))
}

// run returns a status in any case, because scorecard shows other output as an
// empty result.
func run(ctx context.Context, args []string) scorecard.TestStatus {
	if len(args) != 1 || args[0] != vmLifecycle {
		return failed(fmt.Sprint(args), "", fmt.Errorf("the only test is %s", vmLifecycle))
	}
	l := &lifecycle{namespace: os.Getenv("SCORECARD_NAMESPACE"), timeout: 45 * time.Second}
	// The version is in the log of the test, because scorecard parses the output of the pod.
	l.logf("scorecard version %s, built by %s", version, runtime.Version())
	var err error
	if l.client, err = newClient(); err == nil {
		err = l.run(ctx)
	}
	if err != nil {
		return failed(vmLifecycle, l.log.String(), err)
	}
	return status(scorecard.TestResult{Name: vmLifecycle, State: scorecard.PassState, Log: l.log.String()})
}

func newClient() (client.Client, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, pcapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

func failed(test, log string, err error) scorecard.TestStatus {
	return status(scorecard.TestResult{Name: test, State: scorecard.FailState, Log: log, Errors: []string{err.Error()}})
}

func status(result scorecard.TestResult) scorecard.TestStatus {
	return scorecard.TestStatus{Results: []scorecard.TestResult{result}}
}
