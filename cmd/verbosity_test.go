package main

import (
	"testing"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestBoundVerbosityDisablesBodies(t *testing.T) {
	tests := []struct {
		name  string
		level zapcore.LevelEnabler
		want  zapcore.LevelEnabler
	}{
		{name: "the most verbose level: bounded", level: zapcore.Level(-10), want: zapcore.Level(-6)},
		{name: "the level of bodies: bounded", level: zapcore.Level(-7), want: zapcore.Level(-6)},
		{name: "debug: kept", level: zapcore.DebugLevel, want: zapcore.DebugLevel},
		{name: "no level: kept"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			options := zap.Options{Level: tc.level}
			boundVerbosity(&options)
			if options.Level != tc.want {
				t.Errorf("level %v, want %v", options.Level, tc.want)
			}
		})
	}
}
