<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>errors</name>
    <message>
        <source>{who} holds {what} on the {device}, and only one model may be in memory at a time. Unload the model there or quit that program, then try again.</source>
        <translation>{who}正在使用{what}（{device}），而内存中同时只能有一个模型。请在那里释放模型或退出该程序，然后重试。</translation>
    </message>
    <message>
        <source>Another DeskInfer (process {process})</source>
        <translation>另一个 DeskInfer（进程 {process}）</translation>
    </message>
    <message>
        <source>Another process</source>
        <translation>另一个程序</translation>
    </message>
    <message>
        <source>the model {model}</source>
        <translation>模型 {model}</translation>
    </message>
    <message>
        <source>a model</source>
        <translation>一个模型</translation>
    </message>
    <message>
        <source>The lock for the {device} cannot be written to {folder} ({reason}). Make that directory writable.</source>
        <translation>无法在 {folder} 中写入 {device} 的锁文件（{reason}）。请使该文件夹可写。</translation>
    </message>
    <message>
        <source>The model {model} is not on this machine (looked in {folder}). Fetch it: deskinfer models pull {name}</source>
        <translation>本机没有模型 {model}（已在 {folder} 中查找）。请在模型窗口中下载，或运行 deskinfer models pull {name}。</translation>
    </message>
    <message>
        <source>There is no model {name}: it is no catalog id, .gguf file or model directory. {meant} Fetch one: deskinfer models pull {model}</source>
        <translation>没有名为 {name} 的模型：它既不在模型目录中，也不是 .gguf 文件或模型文件夹。{meant}请在模型窗口中另选一个，或运行 deskinfer models pull {model}。</translation>
    </message>
    <message>
        <source>Did you mean {names}?</source>
        <translation>您是不是要找 {names}？</translation>
    </message>
    <message>
        <source>There are {names}.</source>
        <translation>可用的有 {names}。</translation>
    </message>
    <message>
        <source>There is no file {path}. Check the path, or list models: deskinfer models list</source>
        <translation>没有文件 {path}。请检查路径，或在模型窗口中另选一个模型。</translation>
    </message>
    <message>
        <source>There is no model at {path}. Check the path, or list models: deskinfer models list</source>
        <translation>{path} 处没有模型。请检查路径，或在模型窗口中另选一个模型。</translation>
    </message>
    <message>
        <source>There is nothing at {path}. Check the path, or take it off the list.</source>
        <translation>{path} 处什么也没有。请检查路径，或把它从列表中移除。</translation>
    </message>
    <message>
        <source>The model {model} cannot be looked for ({reason}). Check the path and its permissions, or list models: deskinfer models list</source>
        <translation>无法查找模型 {model}（{reason}）。请检查路径及其权限，或在模型窗口中另选一个模型。</translation>
    </message>
    <message>
        <source>{path} cannot be opened: {reason}. Check its permissions.</source>
        <translation>无法打开 {path}：{reason}。请检查其权限。</translation>
    </message>
    <message>
        <source>{path} cannot be read: {reason}. Check its permissions.</source>
        <translation>无法读取 {path}：{reason}。请检查其权限。</translation>
    </message>
    <message>
        <source>The directory {path} cannot be read ({reason}). Check its permissions.</source>
        <translation>无法读取文件夹 {path}（{reason}）。请检查其权限。</translation>
    </message>
    <message>
        <source>{model} could not be fetched. {reasons} Check the network and proxy, or get {what} another way and give its path instead of the name. What was fetched is kept for the next try.</source>
        <translation>无法下载 {model}。请检查网络和代理，或用别的方式取得{what}，再选用它的路径。已下载的部分会保留，供下次继续。（{reasons}）</translation>
    </message>
    <message>
        <source>the file {file}</source>
        <translation>文件 {file}</translation>
    </message>
    <message>
        <source>the directory of the model</source>
        <translation>模型文件夹</translation>
    </message>
    <message>
        <source>Fetching {model} {what}, and {free} are free at {folder}. What was fetched is kept. Free some space, or choose another directory for models, and pull again.</source>
        <translation>下载 {model} 时{what}，而 {folder} 只剩 {free}。已下载的部分会保留。请腾出空间，或为模型另选一个文件夹，然后重试。</translation>
    </message>
    <message>
        <source>needs {size} more</source>
        <translation>还需要 {size}</translation>
    </message>
    <message>
        <source>found the disk full</source>
        <translation>磁盘已满</translation>
    </message>
    <message>
        <source>{model} cannot be written to {folder}: {reason}. Check the permissions of the directory, or choose another one for models.</source>
        <translation>无法把 {model} 写入 {folder}：{reason}。请检查该文件夹的权限，或为模型另选一个文件夹。</translation>
    </message>
    <message>
        <source>{model} is being fetched by another process. Wait for it, or stop it, and try again.</source>
        <translation>另一个程序正在下载 {model}。请等它完成，或停止它后重试。</translation>
    </message>
    <message>
        <source>Fetching {model} failed. What was fetched is kept. Try again; the log says more.</source>
        <translation>下载 {model} 失败。已下载的部分会保留。请重试；详情见日志。</translation>
    </message>
    <message>
        <source>{model} cannot be deleted from {folder}: {reason}. Close the programs that use the model, check the permissions, and try again.</source>
        <translation>无法从 {folder} 删除 {model}：{reason}。请关闭正在使用该模型的程序，检查权限，然后重试。</translation>
    </message>
    <message>
        <source>{path} cannot be deleted: {reason}. Close the programs that use the model, check the permissions, and try again.</source>
        <translation>无法删除 {path}：{reason}。请关闭正在使用该模型的程序，检查权限，然后重试。</translation>
    </message>
    <message>
        <source>{reason}. Check the disk and the permissions, and try again.</source>
        <translation>{reason}。请检查磁盘和权限，然后重试。</translation>
    </message>
    <message>
        <source>{model} is of the architecture {found}, but this engine runs {known}. Take a model of one of these families.</source>
        <translation>{model} 的架构是 {found}，而本引擎只支持 {known}。请换用这些架构的模型。</translation>
    </message>
    <message>
        <source>{model} states the architecture {found}, but this engine runs {known}. Take a model of one of these families.</source>
        <translation>{model} 注明的架构是 {found}，而本引擎只支持 {known}。请换用这些架构的模型。</translation>
    </message>
    <message>
        <source>{model} stores {tensor} as {found}, but this engine runs {known}. Take the same model in one of these, Q4_K_M for example.</source>
        <translation>{model} 以 {found} 格式存储 {tensor}，而本引擎只支持 {known}。请换用同一模型的这些格式，例如 Q4_K_M。</translation>
    </message>
    <message>
        <source>The backend {name} is not available: {reason}.</source>
        <translation>计算后端 {name} 不可用：{reason}。</translation>
    </message>
    <message>
        <source>no NVIDIA driver was found, and no NVIDIA GPU works without it. If this machine has one, install NVIDIA's driver, version 525 or newer</source>
        <translation>未找到 NVIDIA 驱动，没有它就无法使用 NVIDIA GPU。如果本机有 NVIDIA GPU，请安装 525 或更新版本的驱动</translation>
    </message>
    <message>
        <source>the package cuda-bindings is missing ({reason}). If this machine has an NVIDIA GPU, install it with: pip install 'deskinfer[cuda]'</source>
        <translation>缺少 cuda-bindings 包（{reason}）。如果本机有 NVIDIA GPU，请安装：pip install 'deskinfer[cuda]'</translation>
    </message>
    <message>
        <source>NVIDIA's driver supports CUDA {major}.{minor} and 12.0 is needed. Update the driver to 525 or newer</source>
        <translation>NVIDIA 驱动支持 CUDA {major}.{minor}，而需要 12.0。请将驱动更新到 525 或更新版本</translation>
    </message>
    <message>
        <source>{gpu} has compute capability {major}.{minor}; 7.5 (Turing) or newer is needed</source>
        <translation>{gpu} 的计算能力为 {major}.{minor}，而需要 7.5（Turing）或更新</translation>
    </message>
    <message>
        <source>The GPU failed: {reason}</source>
        <translation>GPU 出错：{reason}</translation>
    </message>
    <message>
        <source>What {model} would take cannot be told ({kind}: {reason}). Check its files, or load it: the load says more.</source>
        <translation>无法得知 {model} 需要多少内存（{kind}：{reason}）。请检查其文件，或直接加载，加载时会给出更多信息。</translation>
    </message>
    <message>
        <source>The model's output for the next token is {value}, not a number to choose by. Its file may be damaged: verify the model or fetch it again.</source>
        <translation>模型对下一个词元的输出是 {value}，无法据此选词。模型文件可能已损坏：请检查文件，或重新下载。</translation>
    </message>
    <message>
        <source>The engine failed at {what} ({kind}: {reason}). Try again; if it happens again, restart the app and report it.</source>
        <translation>引擎在 {what} 时出错（{kind}：{reason}）。请重试；若再次发生，请重启程序并报告此问题。</translation>
    </message>
    <message>
        <source>The model was unloaded while the text was being counted. Try again.</source>
        <translation>正在计算文字长度时模型被释放了。请重试。</translation>
    </message>
    <message>
        <source>The engine has been closed. Start the app again.</source>
        <translation>引擎已关闭。请重新启动本程序。</translation>
    </message>
    <message>
        <source>The engine has been closed.</source>
        <translation>引擎已关闭。</translation>
    </message>
    <message>
        <source>The text is empty, but an action needs some. Select a text first.</source>
        <translation>没有文字可供处理。请先选中一段文字。</translation>
    </message>
    <message>
        <source>The context is {tokens} tokens, but it must be {least} or more.</source>
        <translation>上下文为 {tokens} 个词元，但至少需要 {least} 个。</translation>
    </message>
    <message>
        <source>The answer cannot follow its grammar any further ({reason}). Simplify it.</source>
        <translation>回答无法继续遵循其语法（{reason}）。请简化语法。</translation>
    </message>
    <message>
        <source>The model's chat template refuses these {count} messages: {reason}. Send them in an order that it accepts.</source>
        <translation>模型的聊天模板不接受这 {count} 条消息：{reason}。请按它接受的顺序发送。</translation>
    </message>
    <message>
        <source>In the engine's own words: {words}</source>
        <translation>引擎的原话：{words}</translation>
    </message>
</context>
</TS>
