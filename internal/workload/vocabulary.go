package workload

// vocabulary are common English words of three to six letters. With the space
// before it each is one token to the byte-pair vocabularies in use (GPT-2, cl100k and
// o200k were asked; those of Llama 3 and Qwen are built on cl100k's).
var vocabulary = [1 << wordBits]string{
	"able", "about", "above", "across", "act", "action", "add", "adult", "after", "again", "age", "agent", "ago", "agree", "air", "all", "allow",
	"almost", "alone", "along", "also", "always", "among", "amount", "and", "animal", "answer", "any", "appear", "apply", "area", "argue", "arm",
	"army", "around", "arrive", "art", "ask", "attack", "author", "avoid", "away", "baby", "back", "bad", "bag", "ball", "band", "bank", "bar", "base",
	"basic", "battle", "bear", "beat", "beauty", "become", "bed", "before", "begin", "behind", "being", "below", "best", "better", "beyond", "big",
	"bill", "bird", "bit", "black", "block", "blood", "blue", "board", "boat", "body", "book", "born", "both", "bottom", "box", "boy", "break", "bring",
	"brown", "budget", "build", "bus", "but", "buy", "call", "came", "camp", "can", "car", "card", "care", "career", "carry", "case", "catch", "cause",
	"cell", "center", "chair", "chance", "change", "charge", "check", "child", "choice", "choose", "church", "city", "civil", "claim", "class",
	"clear", "clock", "close", "club", "coast", "code", "coffee", "cold", "color", "come", "common", "copy", "corner", "cost", "could", "count",
	"county", "couple", "course", "court", "cover", "create", "credit", "crime", "cross", "cup", "cut", "dark", "data", "date", "day", "dead", "deal",
	"death", "debate", "decade", "decide", "deep", "degree", "design", "desk", "detail", "die", "dinner", "direct", "doctor", "dog", "door",
	"double", "doubt", "down", "draw", "dream", "dress", "drink", "drive", "drop", "drug", "dry", "due", "during", "each", "early", "earn", "earth",
	"east", "easy", "eat", "edge", "effect", "effort", "eight", "either", "else", "empty", "end", "energy", "engine", "enjoy", "enough", "enter",
	"entire", "equal", "error", "even", "event", "ever", "every", "exact", "exist", "expect", "expert", "eye", "face", "fact", "fail", "fair", "fall",
	"family", "famous", "far", "farm", "fast", "father", "fear", "feel", "few", "field", "fight", "figure", "file", "fill", "film", "final", "find",
	"fine", "finger", "finish", "fire", "firm", "first", "fish", "fit", "five", "fix", "flat", "floor", "flow", "fly", "focus", "follow", "food", "foot",
	"for", "force", "forest", "forget", "form", "former", "forty", "found", "four", "frame", "free", "fresh", "friend", "from", "front", "full",
	"fund", "future", "gain", "game", "garden", "gas", "gate", "get", "girl", "give", "glass", "global", "goal", "gold", "good", "great", "green",
	"ground", "group", "grow", "growth", "guard", "guess", "gun", "guy", "hair", "half", "hand", "hang", "happen", "happy", "hard", "hat", "have",
	"head", "health", "hear", "heart", "heat", "heavy", "height", "help", "her", "here", "hero", "high", "hill", "him", "his", "hit", "hold", "hole",
	"home", "hope", "horse", "hot", "hotel", "hour", "house", "how", "huge", "human", "hunt", "ice", "idea", "image", "impact", "income", "indeed",
	"inside", "into", "iron", "island", "issue", "item", "job", "join", "joint", "judge", "jump", "just", "keep", "key", "kid", "kill", "kind", "king",
	"know", "label", "labor", "lack", "lady", "land", "large", "last", "late", "later", "laugh", "law", "lay", "lead", "leader", "learn", "least",
	"leave", "left", "leg", "legal", "less", "let", "letter", "level", "lie", "life", "light", "like", "likely", "line", "link", "list", "listen",
	"little", "live", "local", "long", "look", "lose", "loss", "lost", "lot", "love", "low", "lower", "lunch", "main", "major", "make", "male", "man",
	"manage", "many", "map", "mark", "market", "master", "match", "matter", "may", "maybe", "mean", "meat", "media", "meet", "member", "memory",
	"men", "metal", "method", "middle", "might", "mile", "milk", "mind", "mine", "minute", "miss", "mix", "model", "modern", "moment", "money",
	"month", "moon", "more", "most", "mother", "motion", "mouth", "move", "movie", "much", "music", "must", "name", "narrow", "nation", "native",
	"nature", "near", "nearly", "neck", "need", "never", "new", "news", "next", "nice", "night", "nine", "noise", "none", "nor", "north", "nose", "not",
	"note", "notice", "now", "number", "object", "ocean", "off", "offer", "office", "often", "oil", "old", "once", "one", "only", "onto", "open",
	"option", "orange", "order", "other", "our", "out", "over", "own", "owner", "pack", "page", "pain", "paint", "pair", "paper", "parent", "park",
	"part", "party", "pass", "past", "path", "pay",
}
