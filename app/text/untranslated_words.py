"""Words that tell what a translation has left as it was, and words that may stay."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In lower case. A sentence of some length has several of its language's; names of products have few.
FUNCTION_WORDS = {
    "en": _words(
        "a an the and or but nor if because while although when where which who whom whose what why how that this "
        "these those there here it its i me my we us our you your he him his she her they them their is am are was "
        "were be been being has have had do does did will would shall should can could may might must not no nobody "
        "nothing to of in on at by for from with without about into onto over under between before after since until "
        "during against than as so too very also only just still already never always now then again every each all "
        "both some any many much more most few other another such own same please don't doesn't didn't isn't aren't "
        "wasn't can't won't i'm i'll i've you're we're we'll it's that's let's"
    ),
    "de": _words(
        "der die das den dem des ein eine einen einem einer eines und oder aber denn weil wenn als ob dass ich du er "
        "sie es wir ihr mich mir dich dir ihn ihm uns euch ihnen mein dein sein unser euer ist bin bist sind war "
        "waren wird werden wurde wurden hat habe haben hatte hatten kann können konnte muss müssen soll sollen darf "
        "will wollen nicht kein keine zu zum zur von vom mit ohne bei beim für auf aus an am im in ins über unter "
        "vor nach seit bis durch gegen um nur noch schon auch sehr mehr immer nie jetzt dann hier dort wie wo wer "
        "was warum welche diese dieser dieses alle jeder jede bitte"
    ),
    "fr": _words(
        "le la les l un une des du de d et ou mais donc car si que qui quoi dont où quand comme je tu il elle on "
        "nous vous ils elles me te se mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs est sont suis "
        "es sommes êtes était étaient sera seront a ai as avons avez ont avait être avoir ne pas plus jamais rien ce "
        "cet cette ces à au aux en dans sur sous avec sans pour par entre avant après depuis pendant chez très aussi "
        "encore déjà toujours ici là tout tous toute toutes"
    ),
    "es": _words(
        "el la los las un una unos unas y o u pero porque si que quien cuando donde como yo tú él ella nosotros "
        "ustedes ellos ellas me te se nos mi mis tu tus su sus nuestro nuestra es son soy eres somos era eran será "
        "fue fueron ha he han hay había ser estar está están no ni nunca nada este esta esto estos estas ese esa eso "
        "de del a al en con sin por para entre antes después desde hasta sobre muy también todavía ya siempre aquí "
        "todo todos toda todas más"
    ),
}
# Of these at least two stand between two names: Lord of the Rings, Ministerio de Asuntos Exteriores.
CONNECTORS = _words(
    "a am an and at by for from in of on or the to with de del de la le les des du et y los las der die das des und "
    "von vom van zu zur im für di da do e el"
)
_WEEKDAYS_AND_MONTHS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February April June July August "
    "September October November December today tomorrow yesterday tonight",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonnabend Sonntag Januar Februar März April Mai Juni "
    "Juli August September Oktober November Dezember heute gestern",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août "
    "septembre octobre novembre décembre demain aujourd'hui",
    "es": "lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto "
    "septiembre octubre noviembre diciembre hoy ayer mañana",
}
CALENDAR = {code: _words(text.lower()) for code, text in _WEEKDAYS_AND_MONTHS.items()}
# A month that is a name or another word as well: only beside a number.
MONTHS_BESIDE_NUMBERS = {"en": _words("march may april june august"), "fr": _words("mars"), "es": _words("marzo mayo")}
# Or in the source behind one of these.
MONTHS_BEHIND = {
    "en": "in|since|until|till|from|of|last|next|early|late|mid",
    "fr": "en|depuis|fin|début",
    "es": "en|desde|hasta",
}
# Before a name, in capitals as here.
TITLES = {
    "en": _words("Mr Mrs Ms Miss Dr Prof Professor Sir Madam Uncle Aunt"),
    "de": _words("Herr Herrn Frau Dr Prof Professor Onkel Tante"),
    "fr": _words("M Mme Mlle Monsieur Madame Mademoiselle Dr Docteur Professeur"),
    "es": _words("Sr Sra Srta Señor Señora Señorita Don Doña Dr Dra Doctor Doctora Profesor Profesora"),
}
# They have a capital because a line or a sentence begins with them.
OPENERS = {
    "en": _words("hello hi hey dear thanks thank sincerely cheers regards please sorry congratulations yes"),
    "de": _words("hallo liebe lieber danke grüße viele herzliche bitte ja nein entschuldigung"),
    "fr": _words("bonjour bonsoir salut cher chère chers merci cordialement oui non"),
    "es": _words("hola querido querida estimado estimada gracias saludos sí"),
}
# No names, though they may have a capital.
FAMILY = {
    "en": _words("mum mom mummy mommy dad daddy grandma grandpa granny"),
    "de": _words("mama papa oma opa mutti vati"),
    "fr": _words("maman papa mamie papi"),
    "es": _words("mamá papá abuela abuelo"),
}
# In lower case in good translations as well: units, abbreviations, and words that other languages took over.
STAYS = _words(
    "kg km cm mm nm mg ml cl dl kb mb gb tb ms ns px pt dpi ppi fps bps kbps mbps gbps rpm kwh kw mw hz khz mhz ghz "
    "kcal kj mol ppm psi db mph kph sqm sq ft tbsp tsp lb lbs oz am pm vs etc eg ie ca cf al et id no nr vol pp ed "
    "app apps bug bugs demo token tokens cookie cookies email emails e-mail e-mails mail wifi wi-fi vlog blog logo "
    "emoji offer cosplay karaoke ok okay bluetooth online offline web spam hashtag podcast smartwatch latte lofi "
    "yoga jeans selfie iphone ipad"
)
# Programs and libraries that are written in lower case, and words of code that are no words of a sentence.
LOWER_CASE_NAMES = _words(
    "git github gitlab npm npx pnpm yarn deno bun pip pipx uv conda python python3 pytest ruff mypy tox rustc rustup "
    "gofmt gcc clang cmake docker podman kubectl helm terraform ansible ssh scp rsync curl wget sudo chmod grep sed "
    "awk gzip unzip apt apt-get dnf yum brew pacman systemctl systemd journalctl cron crontab bash zsh vim nvim nano "
    "emacs tmux ffmpeg nginx redis memcached kafka rabbitmq mysql postgres postgresql psql sqlite mongodb "
    "elasticsearch grafana prometheus jenkins numpy pandas scipy matplotlib seaborn sklearn scikit-learn pytorch "
    "torchvision tensorflow keras jax vllm llama ollama langchain fastapi uvicorn gunicorn httpx pydantic sqlalchemy "
    "jquery webpack vite eslint typescript javascript kotlin php perl lua scala haskell golang sql html css json "
    "yaml toml xml csv utf ascii localhost http https ftp sftp tcp udp dns api url uri stdin stdout stderr async "
    "await enum struct bool int str null true false main venv cmd ctrl esc linux ubuntu debian fedora macos android "
    "kubernetes openssl openssh gdb lldb strace cuda cudnn nvcc gpu cpu adidas reddit lululemon arxiv xkcd eduroam "
    "airpods openai"
)
# A row of words that begins with one of them is typed rather than said.
COMMANDS = _words(
    "git npm npx pnpm yarn node deno bun pip pip3 pipx poetry uv conda python python3 pytest ruff mypy tox cargo "
    "rustup go gcc cmake make docker podman kubectl helm terraform ssh scp rsync curl wget sudo cd ls cp mv rm mkdir "
    "chmod cat grep sed awk tar zip unzip apt apt-get dnf yum brew pacman snap systemctl journalctl vim nano ffmpeg "
    "psql redis-cli ollama vllm deskinfer"
)
# Of Chinese and Japanese names, the family's; and words that begin as such a name does.
CHINESE_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁"
    "任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛阎段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严"
    "莫孔向常汤張劉陳楊黃趙吳孫馬鄭謝許韓鄧馮蕭葉蘇呂盧鐘陸賈鄒龍賀顧龔錢嚴湯"
)
NO_NAMES = _words(
    "周一 周二 周三 周四 周五 周六 周日 周末 周年 周围 周期 周报 马上 马路 高兴 高度 高级 高速 高中 高层 高温 高铁 "
    "方便 方法 方案 方式 方向 方面 任务 任何 任意 任命 程序 程度 程式 金额 金融 金属 白天 白色 常见 常用 常常 常规 "
    "向前 向上 向下 何时 何地 何处 万元 万一 万人 万件 石油 石头 江南 江苏 叶子 田地 林业 黄金 黄色 黄油 龙头 毛病 "
    "毛巾 钱包 严重 严格 莫非 于是 余额 许多 许可 许可证 谢谢 曾经 武器 夏天 夏季 熊猫 雷雨 史料 孔子 丁字 白酒 汤匙 "
    "段落 范围 姜汁 顾客 顾问 付款 付费 董事 董事会 董事长 严禁 向导 常务 田野 马力 马达 陆续 陆地 石材 高效 高峰 "
    "高价 金牌 金色 江水 白糖 何况 任期 任职 方块 方形 程控 史上 余下 余款 贺卡 钟头 钟点 余票"
)
JAPANESE_SURNAMES = _words(
    "佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 斎藤 清水 山崎 森 池田 "
    "橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤 近藤 村上 遠藤 青木 坂本 斉藤 福田 太田 西村 藤井 "
    "金子 岡本 藤原 三浦 中野 原田 松田 竹内"
)
KOREAN_SURNAMES = frozenset("김이박최정강조윤장임한오서신권황안송류홍")
# Where one of these stands, a row of Chinese characters is Chinese and no Japanese name or compound.
CHINESE_FUNCTION_CHARS = frozenset("的了是在不这们我你他她吗呢着过把被和就都也很会请给让从还没您")
# Who speaks and is spoken to: what has one of them in quotation marks is said, and no title.
SPEAKERS = _words(
    "i we he she they i'm i'll i've we're we'll ich wir ihr du je nous vous j'ai yo nosotros я мы ты вы он она они"
)
CHINESE_SPEAKERS = frozenset("我你您他她私僕")
