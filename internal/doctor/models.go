package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
)

// modelsStatus is the status with which the endpoint answered when it was asked
// for its models where the API is; 0 is unknown.
func (v *visit) modelsStatus() int {
	for _, t := range v.found.Tried {
		if t.Method == http.MethodGet && t.URL == v.root+"/models" {
			return t.Status
		}
	}
	return 0
}

// checkModels looks at the list of models, which Find has already asked for.
func checkModels(_ context.Context, v *visit) Finding {
	models := v.found.Models
	switch n := len(models); {
	case n > 0:
		var names []string
		for _, m := range models[:min(n, 5)] {
			names = append(names, v.foreign(m))
		}
		more := ""
		if n > 5 {
			more = fmt.Sprintf(" and %d more", n-5)
		}
		if n == 1 {
			return green("one model is listed: " + names[0])
		}
		return green(fmt.Sprintf("%d models are listed", n), strings.Join(names, ", ")+more+".")
	case models != nil:
		return yellow("the list of models is empty", "", "load a model, or see which ones the key may use")
	}
	switch status := v.modelsStatus(); status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return grey("the models are not listed without a key that the endpoint takes")
	case 0, http.StatusNotFound, http.StatusMethodNotAllowed:
		return grey("the endpoint does not list its models")
	default:
		return grey(fmt.Sprintf("the endpoint does not list its models (%d)", status))
	}
}

// checkModel says whether the endpoint knows the model.
func checkModel(ctx context.Context, v *visit) Finding {
	reply := v.plain(ctx)
	if unknownModel(reply) {
		return v.noModel()
	}
	name := v.foreign(v.chosen())
	if reply.Failed != "" && reply.Failed != endpoint.FailedEmpty {
		if slices.Contains(v.found.Models, v.chosen()) {
			return green(name + " is listed")
		}
		return grey("not known because the call was not answered properly")
	}
	as := ""
	if got := reply.Record.ResponseModel; got != "" && got != v.chosen() {
		as = "It answers as " + v.foreign(got) + "."
	}
	switch {
	case v.Model == "" && name == "":
		return green("the endpoint answers without being told a model", as)
	case v.Model == "" && len(v.found.Models) == 1:
		return green("the only model listed is "+name, as)
	case v.Model == "":
		return green("none was named; the first that is listed was called: "+name, "Another one: --model.", as)
	case len(v.found.Models) > 0 && !slices.Contains(v.found.Models, v.Model):
		return yellow(name+" is not listed, but answers", as,
			"name a model that is listed, so that what answers is what was asked for; or see which one the endpoint takes for names that it does not know")
	}
	return green(name+" answers", as)
}

// noModel is a call that was refused for its model.
func (v *visit) noModel() Finding {
	models := v.found.Models
	if v.chosen() == "" {
		return red("the endpoint wants to be told a model", "None was named, and it lists none.", "name one: --model NAME")
	}
	title := "there is no model " + v.foreign(v.chosen()) + " at the endpoint"
	if slices.Contains(models, v.chosen()) {
		return red("the endpoint lists "+v.foreign(v.chosen())+", but does not serve it with the "+string(v.API)+" API", "",
			"name a model that can do that: --model NAME; or choose another API: --api")
	}
	var near []string
	for _, m := range endpoint.Nearest(v.chosen(), models, 3) {
		near = append(near, v.foreign(m))
	}
	switch {
	case len(models) == 1:
		return red(title, "The only one served is "+v.foreign(models[0])+".", "use --model "+v.foreign(models[0]))
	case len(near) > 0:
		return red(title, "Closest are: "+strings.Join(near, ", ")+".", "use --model "+near[0])
	case len(models) > 0:
		return red(title, fmt.Sprintf("None of the %d that are listed has a name like it.", len(models)), "choose one of the list: GET "+v.root+"/models")
	}
	return red(title, "", "see the provider's list of models, and whether the key may use this one")
}

// unknownModel tells whether a call was refused for its model.
func unknownModel(r *endpoint.Reply) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
	default:
		return false
	}
	kind, message := errorOf(r.Body)
	kind, message = lower(kind), lower(message)
	if strings.Contains(kind, "model_not") || strings.Contains(kind, "model_required") || strings.Contains(kind, "invalid_model") {
		return true
	}
	// Some refuse what a model cannot do; that is no matter of its name.
	if !strings.Contains(message, "model") {
		return false
	}
	for _, sign := range []string{"not found", "does not exist", "not exist", "unknown model", "no such model", "not available", "not supported", "model is required",
		"must provide a model", "no model", "not a valid model", "invalid model", "model:", "field required"} {
		if strings.Contains(message, sign) {
			return true
		}
	}
	return false
}
