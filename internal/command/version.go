package command

import "runtime/debug"

// modulePath is this module's.
const modulePath = "github.com/weirgate/weir"

// Version is this program's: that of the module, else the commit it was built of;
// "" when the build tells neither.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if info.Main.Path != modulePath {
		for _, dep := range info.Deps { // a Caddy of somebody else's make, with this module in it
			if dep.Path != modulePath {
				continue
			}
			if dep.Replace != nil {
				return released(dep.Replace.Version)
			}
			return released(dep.Version)
		}
		return ""
	}
	if v := released(info.Main.Version); v != "" {
		return v
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changed
}

// released is a version, "" for what a build without one has in its place.
func released(version string) string {
	if version == "(devel)" {
		return ""
	}
	return version
}
