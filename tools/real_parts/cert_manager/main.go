// Those of cert-manager's controllers that sign by a CA in a Secret, and by the key that asks, in one program.
//
// The project's own main is a module that cannot be had by itself, and brings ACME and every cloud's DNS. What
// signs is the same code. Without its webhook the schemas of its CRDs are all that checks what is written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster")
	resources  = flag.String("resources", "cert-manager", "the namespace of the Secrets of ClusterIssuers")
	listen     = flag.String("listen", "", "HOST:PORT that answers 200 once everything is known")
	approve    = flag.Bool("approve", true, "approve every request, as it does unless told otherwise")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         *kubeconfig,
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 100,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: *resources},
	})
	if err != nil {
		return err
	}
	loops, err := built(factory)
	if err != nil {
		return err
	}
	known, err := factory.Build()
	if err != nil {
		return err
	}
	known.KubeSharedInformerFactory.Start(ctx.Done())
	known.SharedInformerFactory.Start(ctx.Done())

	ended := make(chan error, len(loops)+1)
	for name, loop := range loops {
		go func() { ended <- named(name, loop.Run(2, ctx)) }()
	}
	known.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done())
	known.SharedInformerFactory.WaitForCacheSync(ctx.Done())
	if *listen != "" {
		server := http.Server{Addr: *listen, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(ready)}
		go func() { ended <- server.ListenAndServe() }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return errors.Join(errors.New("a part of cert-manager ended"), err)
	}
}

// Their informers are registered with this: none may be started before.
func built(factory *controller.ContextFactory) (map[string]controller.Interface, error) {
	loops := map[string]controller.Interface{}
	for name, construct := range controller.Known() {
		if name == approver.ControllerName && !*approve {
			continue
		}
		loop, err := construct(factory)
		if err != nil {
			return nil, named(name, err)
		}
		loops[name] = loop
	}
	return loops, nil
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

func ready(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) }
