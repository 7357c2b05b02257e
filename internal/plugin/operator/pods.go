package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/plugin"
)

const (
	// DefaultNamespace is where the manifests of this project install the operator.
	DefaultNamespace = "private-cloud-operator-system"
	// selector selects the pods of the operator, however it is installed.
	selector = "app.kubernetes.io/name=private-cloud-operator,control-plane=controller-manager"
	// addressFlag is the flag of the operator with the address of its endpoint.
	addressFlag = "diagnostics-bind-address"
	// forwardTimeout is how long it may take until a port is forwarded.
	forwardTimeout = 15 * time.Second
)

// forwardAll forwards a port to each pod of the operator that serves diagnostics.
func forwardAll(ctx context.Context, env *plugin.Env, namespace string) (*Operator, error) {
	reader, err := env.Client()
	if err != nil {
		return nil, err
	}
	pods, err := podsOf(ctx, reader, namespace)
	if err != nil {
		return nil, err
	}
	clients, config, err := env.Clients()
	if err != nil {
		return nil, err
	}
	o := &Operator{}
	failed := fmt.Errorf("no pod of the operator in namespace %s serves diagnostics: %s", pods[0].Namespace, upgrade)
	for i := range pods {
		port := portOf(&pods[i])
		if port == 0 {
			continue
		}
		m, err := forward(ctx, config, clients, &pods[i], port)
		if err != nil {
			failed = err
			continue
		}
		o.managers = append(o.managers, m)
	}
	if len(o.managers) == 0 {
		return nil, failed
	}
	return o, nil
}

// podsOf returns the pods of the operator that run in its namespace.
func podsOf(ctx context.Context, reader client.Reader, namespace string) ([]corev1.Pod, error) {
	namespace = cmp.Or(namespace, DefaultNamespace)
	list, err := listPods(ctx, reader, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return nil, &MissingRightError{Right: "list pods", Namespace: namespace}
	case err != nil:
		return nil, fmt.Errorf("list the pods of the operator: %w", err)
	}
	var running []corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running = append(running, *pod)
		}
	}
	switch {
	case len(list.Items) > 0 && len(running) == 0:
		return nil, fmt.Errorf("no pod of the operator runs: see kubectl get pods -n %s -l %s", list.Items[0].Namespace, selector)
	case len(running) == 0:
		return nil, fmt.Errorf("there is no pod of the operator in namespace %s: set --operator-namespace, or --operator-url if it runs outside of the cluster", namespace)
	}
	return running, nil
}

func listPods(ctx context.Context, reader client.Reader, namespace string) (*corev1.PodList, error) {
	selected, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	return &list, reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selected})
}

// MissingRightError is that the user lacks a right in the namespace of the operator.
type MissingRightError struct{ Right, Namespace string }

func (e *MissingRightError) Error() string {
	return fmt.Sprintf("the right to %s in namespace %s is missing: ask an administrator of the cluster for the Role diagnostics-reader there, "+
		"or set --operator-namespace if the operator is in another namespace", e.Right, e.Namespace)
}

// portOf returns the port at which a pod serves diagnostics, 0 if it does not.
func portOf(pod *corev1.Pod) uint16 {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		arguments := append(append([]string{}, container.Command...), container.Args...)
		for j, argument := range arguments {
			name, value, joined := strings.Cut(strings.TrimLeft(argument, "-"), "=")
			if name != addressFlag || !strings.HasPrefix(argument, "-") {
				continue
			}
			if !joined && j+1 < len(arguments) {
				value = arguments[j+1]
			}
			port, err := strconv.ParseUint(value[strings.LastIndex(value, ":")+1:], 10, 16)
			if err == nil {
				return uint16(port)
			}
		}
	}
	return 0
}

// forward forwards a free port of this machine to one of a pod.
func forward(ctx context.Context, config *rest.Config, clients kubernetes.Interface, pod *corev1.Pod, port uint16) (*manager, error) {
	target := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := dialerTo(config, target)
	if err != nil {
		return nil, err
	}
	// What is forwarded fails by the error of the request, which says what to do.
	ctx, stop := context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		stop()
		return nil, fmt.Errorf("forward a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err = <-ended:
	case <-time.After(forwardTimeout):
		err = errors.New("the API server does not answer in time: try again")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		stop()
		return nil, explainForward(err, pod)
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		stop()
		return nil, fmt.Errorf("forward a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	base := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", ports[0].Local)}
	return &manager{name: pod.Namespace + "/" + pod.Name, base: base, stop: stop}, nil
}

// explainForward returns the error of a port that cannot be forwarded. The error of an
// upgrade has no type, only the text of the answer.
func explainForward(err error, pod *corev1.Pod) error {
	if strings.Contains(strings.ToLower(err.Error()), "forbidden") {
		return &MissingRightError{Right: "create pods/portforward", Namespace: pod.Namespace}
	}
	return fmt.Errorf("forward a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// dialerTo connects as kubectl port-forward does: over a websocket or, where the API server
// or a proxy before it does not accept that, over SPDY.
func dialerTo(config *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
