package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// describe tells collectors what this process is.
func describe(version string) (*resource.Resource, error) {
	r, err := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "weir"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process for OpenTelemetry: %w; look at OTEL_RESOURCE_ATTRIBUTES", err)
	}
	return r, nil
}

// scopeOf is the instrumentation scope of all that is exported.
func scopeOf(version string) instrumentation.Scope {
	return instrumentation.Scope{Name: "github.com/weirgate/weir", Version: version}
}
