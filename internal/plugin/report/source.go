package report

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// source is the cluster that the bundle is collected from.
type source struct {
	client client.Reader
	// version returns that of the API server.
	version func() (string, error)
	// logs opens the log of a container.
	logs func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)
	// operator connects to the diagnostics endpoint of the operator.
	operator func(context.Context, operator.Flags) (*operator.Operator, error)
}

func newSource(env *plugin.Env) (*source, error) {
	c, err := env.Client()
	if err != nil {
		return nil, err
	}
	clients, _, err := env.Clients()
	if err != nil {
		return nil, err
	}
	return &source{
		client: c,
		version: func() (string, error) {
			info, err := clients.Discovery().ServerVersion()
			if err != nil {
				return "", err
			}
			return info.GitVersion, nil
		},
		logs: func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
			return clients.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
		},
		operator: func(ctx context.Context, flags operator.Flags) (*operator.Operator, error) {
			return operator.Connect(ctx, env, flags)
		},
	}, nil
}
